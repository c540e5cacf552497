// SPDX-License-Identifier: Apache-2.0
#include "store/recording.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "model/schema.h"
#include "model/tables/meta.h"
#include "model/tables/samples.h"
#include "model/tables/threads.h"
#include "model/testing/random_batch.h"
#include "spool/spool.h"

namespace gpusonde::store {
namespace {

using model::Batch;
using model::BatchBuilder;

Batch Samples(int64_t first_ns, int count) {
  BatchBuilder builder(model::kSamples);
  for (int i = 0; i < count; ++i) builder.Append({.time_ns = first_ns + i, .process = {1, 1}, .tid = 7});
  return builder.Take();
}

Batch OneThread(std::string name) {
  BatchBuilder builder(model::kThreads);
  builder.Append({.process = {1, 1}, .tid = 7, .name = std::move(name)});
  return builder.Take();
}

void WriteSpool(const std::string& folder, std::span<const Batch> batches) {
  auto writer = spool::Writer::Open(folder).value();
  for (const Batch& batch : batches) ASSERT_TRUE(writer.Append(batch).has_value());
  ASSERT_TRUE(writer.Sync().has_value());
}

// First column of the first row, as text; or the error.
std::string Ask(Store& store, const std::string& sql) {
  auto rows = store.Query(sql);
  if (!rows.has_value()) return rows.error().message;
  const Result<bool> more = (*rows)->Next();
  if (!more.has_value()) return more.error().message;
  return *more ? (*rows)->Display(0) : "";
}

class Recording : public testing::Test {
 protected:
  // A recording of three frames at folder_ / name.
  std::string Write(const std::string& name, int64_t first_ns = 100, std::string thread = "last") {
    const std::string spool = folder_ / (name + ".spool");
    WriteSpool(spool, {{OneThread("first"), Samples(first_ns, 3), OneThread(std::move(thread))}});
    const auto frames = WriteRecording(spool, folder_ / name);
    EXPECT_TRUE(frames.has_value()) << frames.error().message;
    EXPECT_EQ(frames.value_or(0), 3);
    return folder_ / name;
  }

  TempFolder folder_;
};

TEST_F(Recording, HoldsWhatTheSpoolHeldWithTheLastRowPerKey) {
  const std::string path = Write("run.sonde");
  auto store = OpenRecordings({path}).value();
  EXPECT_EQ(Ask(*store, "SELECT string_agg(time_ns::VARCHAR, ',') FROM samples"), "100,101,102");
  EXPECT_EQ(Ask(*store, "SELECT string_agg(name, ',') FROM threads"), "last");
  EXPECT_EQ(Ask(*store, "SELECT value FROM meta WHERE key = 'schema_version'"),
            std::to_string(model::kSchemaVersion));
  EXPECT_THAT(Ask(*store, "SELECT value FROM meta WHERE key = 'created_by'"),
              testing::StartsWith("gpusonde "));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp.wal"));
  EXPECT_FALSE(std::filesystem::exists(path + ".wal"));
}

TEST_F(Recording, EveryTableTravelsThroughASpool) {
  std::mt19937_64 random(7);
  std::vector<Batch> batches;
  for (const model::TableInfo& table : model::AllTables())
    batches.push_back(model::RandomBatch(table, 300, random));
  WriteSpool(folder_ / "all.spool", batches);
  ASSERT_EQ(WriteRecording(folder_ / "all.spool", folder_ / "all.sonde").value(), std::ssize(batches));
  auto store = OpenRecordings({folder_ / "all.sonde"}).value();
  for (const model::TableInfo& table : model::AllTables()) {
    if (table.name == "meta") continue;  // random text repeats as a key, and it has rows of its own
    EXPECT_EQ(Ask(*store, "SELECT count(*) FROM " + std::string(table.name)), "300") << table.name;
  }
}

TEST_F(Recording, SeveralAreReadAsOne) {
  const std::string a = Write("a.sonde", 100, "older");
  const std::string b = Write("b.sonde", 200, "newer");
  auto store = OpenRecordings({a, b}).value();
  EXPECT_EQ(Ask(*store, "SELECT string_agg(time_ns::VARCHAR, ',' ORDER BY time_ns) FROM samples"),
            "100,101,102,200,201,202");
  EXPECT_EQ(Ask(*store, "SELECT string_agg(name, ',') FROM threads"), "newer");
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM raw.threads"), "2");
}

TEST_F(Recording, ReplacesTheFileThatWasThere) {
  Write("run.sonde", 100);
  std::filesystem::remove_all(folder_ / "run.sonde.spool");
  auto store = OpenRecordings({Write("run.sonde", 500)}).value();
  EXPECT_EQ(Ask(*store, "SELECT min(time_ns) FROM samples"), "500");
}

}  // namespace
}  // namespace gpusonde::store
