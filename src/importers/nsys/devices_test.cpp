// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <string>
#include <vector>

#include "base/testing/temp_folder.h"
#include "importers/trace.h"

namespace gpusonde::importers::nsys {
namespace {

using testing::ElementsAre;

// "PID ORDINAL NAME" of each device that an export with these rows has.
std::vector<std::string> DevicesWith(const std::string& rows) {
  const TempFolder folder;
  const std::string path = folder.path() + "/export.sqlite";
  const std::string sql =
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER);"
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);" +
      rows;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
  std::vector<std::string> devices;
  const auto trace = OpenTrace(path, {.detail = true});
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  if (trace.has_value())
    for (const TracedDevice& device : (*trace)->info().devices)
      devices.push_back(fmt::format("{} {} {}", device.pid, device.ordinal, device.name));
  return devices;
}

TEST(NsysDevices, AreThoseOfEachProcess) {
  EXPECT_THAT(DevicesWith("INSERT INTO TARGET_INFO_GPU VALUES (7, 'H100', 0), (8, 'A100', 1), (9, 'L40', 2);"
                          "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (8, 0, 41), (7, 1, 41), (7, 0, 42);"),
              ElementsAre("41 1 H100", "42 0 H100", "41 0 A100", "0 2 L40"));
}

// An export of 86 KB with 3000 rows in either table took 3 GB.
TEST(NsysDevices, GpusWithOneNumberAreTheFirstOfThem) {
  EXPECT_THAT(DevicesWith("INSERT INTO TARGET_INFO_GPU VALUES (1, 'first', 0), (1, 'second', 0);"
                          "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 41), (1, 0, 42);"),
              ElementsAre("41 0 first", "42 0 first"));
}

// Every process has a copy.
TEST(NsysDevices, LongNamesAreCut) {
  EXPECT_THAT(DevicesWith("INSERT INTO TARGET_INFO_GPU VALUES (1, hex(zeroblob(1000)), 0);"
                          "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 41);"),
              ElementsAre("41 0 " + std::string(256, '0')));
}

}  // namespace
}  // namespace gpusonde::importers::nsys
