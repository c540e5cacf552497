// SPDX-License-Identifier: Apache-2.0
#include "symbols/binary_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::symbols {
namespace {

std::string OwnPath() { return std::filesystem::read_symlink("/proc/self/exe"); }

TEST(BinaryTable, AFileFoundInAProcessAndOneToldByBuildIdAreTheSame) {
  BinaryTable table;
  const BinaryTable::Binary* from_process = table.InternFromProcess(::getpid(), OwnPath());
  ASSERT_EQ(from_process->build_id.size(), 40u);
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < from_process->build_id.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(from_process->build_id.substr(i, 2), nullptr, 16)));
  EXPECT_EQ(table.Intern(bytes, "/elsewhere/same"), from_process);
  EXPECT_EQ(table.size(), 1u);
}

TEST(BinaryTable, AFileWithAnotherBuildIdIsNotTakenForTheMappedOne) {
  BinaryTable table;
  const uint8_t other[20] = {1, 2, 3};
  const BinaryTable::Binary* binary = table.Intern(other, OwnPath());
  const Status loaded = table.Load(binary, ::getpid());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("replaced"), std::string::npos) << loaded.error().message;
  EXPECT_FALSE(table.Find(binary, 4096).has_value());
  EXPECT_TRUE(table.Load(binary, ::getpid()).has_value()) << "told once";
}

TEST(BinaryTable, AMissingFileIsKnownByItsPath) {
  BinaryTable table;
  const BinaryTable::Binary* binary = table.InternFromProcess(::getpid(), "/no/such/file.so (deleted)");
  EXPECT_EQ(binary->name, "file.so");
  EXPECT_EQ(binary->build_id, "");
  EXPECT_FALSE(table.Load(binary, ::getpid()).has_value());
}

TEST(BinaryTable, TheVdsoHasNames) {
  BinaryTable table;
  const BinaryTable::Binary* vdso = table.InternFromProcess(::getpid(), "[vdso]");
  ASSERT_TRUE(table.Load(vdso, ::getpid()).has_value());
  bool found = false;
  for (uint64_t offset = 0; offset < 8192 && !found; offset += 16)
    if (const auto symbol = table.Find(vdso, offset); symbol.has_value())
      found = symbol->name.find("clock_gettime") != std::string::npos;
  EXPECT_TRUE(found);
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(BinaryTable, KeepsFewFilesOpenHoweverManyWereLoaded) {
  constexpr int kFiles = 400;
  const TempFolder folder;
  const std::string original = ReadFile("/usr/bin/true").value();
  BinaryTable table;
  const std::string id = FromHex(table.InternFromProcess(::getpid(), "/usr/bin/true")->build_id);
  const size_t at = original.find(id);
  ASSERT_NE(at, std::string::npos);
  const size_t before = OpenDescriptors();
  for (int i = 0; i < kFiles; ++i) {
    std::string program = original;
    std::memcpy(&program[at], &i, sizeof i);  // a build id of its own
    const std::string path = folder / std::to_string(i);
    ASSERT_TRUE(WriteFileAtomically(path, program).has_value());
    const Status loaded = table.Load(table.InternFromProcess(::getpid(), path), ::getpid());
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  }
  EXPECT_EQ(table.size(), size_t{kFiles} + 1);
  EXPECT_LE(OpenDescriptors(), before + 256);
}

TEST(BinaryTable, DevicesAndFifosAreNeverOpened) {
  const std::string path = testing::TempDir() + "gpusonde_fifo_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  BinaryTable table;
  EXPECT_FALSE(table.Load(table.InternFromProcess(::getpid(), path), ::getpid()).has_value());
  EXPECT_FALSE(table.Load(table.InternFromProcess(::getpid(), "/dev/zero"), ::getpid()).has_value());
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace gpusonde::symbols
