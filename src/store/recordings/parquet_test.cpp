// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "model/schema.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/metrics.h"
#include "model/tables/threads.h"
#include "store/duckdb/connection.h"
#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

constexpr Id128 kMine{1, 1}, kOthers{1, 2}, kGpuA{2, 1}, kGpuB{2, 2};

class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(tables_);
    auto store = CreateRecording(recording_).value();
    model::BatchBuilder kernels(model::kKernels);
    kernels.Append(
        {.process = kMine, .device = kGpuA, .stream = 7, .start_ns = 100, .end_ns = 110, .name = "a"});
    kernels.Append(
        {.process = kOthers, .device = kGpuB, .stream = 7, .start_ns = 200, .end_ns = 210, .name = "b\""});
    model::BatchBuilder packs(model::kKernelPacks);
    packs.Append({.process = kMine,
                  .device = kGpuA,
                  .stream = 8,
                  .name = "packed",
                  .start_ns = 300,
                  .end_ns = 340,
                  .count = 2,
                  .offsets_ns = {0, 20},
                  .durations_ns = {10, 20},
                  .correlations = {1, 2}});
    model::BatchBuilder metrics(model::kMetrics);
    metrics.Append({.time_ns = 100, .device = kGpuA, .metric = "gpu.power", .value = 1.5});
    metrics.Append({.time_ns = 100, .device = kGpuB, .metric = "gpu.power", .value = 2.5});
    model::BatchBuilder threads(model::kThreads);
    threads.Append({.process = kMine, .tid = 5, .name = "loader"});
    const std::vector<model::Batch> batches = {kernels.Take(), packs.Take(), metrics.Take(), threads.Take()};
    ASSERT_TRUE(store->Append(batches).has_value());
  }

  ParquetSummary Write(const model::Selection& selection = {}) {
    const auto summary = WriteParquet({recording_}, selection, tables_);
    EXPECT_TRUE(summary.has_value()) << summary.error().message;
    return summary.value_or(ParquetSummary());
  }
  // The first column of a query over TABLE.parquet, joined.
  std::string Read(const std::string& select, const std::string& table) {
    auto connection = duckdb::Connection::Open(duckdb::Instance::Create({}).value()).value();
    auto rows = duckdb::Connection::Query(
        std::move(connection), select + " FROM " + duckdb::QuoteText(tables_ + "/" + table + ".parquet"), {},
        duckdb::Connection::Allow::kReading);
    if (!rows.has_value()) return rows.error().message;
    std::string all;
    while ((*rows)->Next().value_or(false)) all += (all.empty() ? "" : " ") + (*rows)->Display(0);
    return all;
  }

  TempFolder folder_;
  const std::string recording_ = folder_ / "a.sonde";
  const std::string tables_ = folder_ / "tables";
};

TEST_F(Parquet, EveryTableIsAFileOfItsRows) {
  const ParquetSummary summary = Write();
  EXPECT_EQ(static_cast<size_t>(summary.tables), model::AllTables().size() - 2);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tables_)) {
    const std::string bytes = ReadFile(entry.path()).value();
    EXPECT_TRUE(bytes.starts_with("PAR1") && bytes.ends_with("PAR1")) << entry.path();
    ++files;
  }
  EXPECT_EQ(static_cast<size_t>(summary.tables), files);
  EXPECT_EQ(Read("SELECT name", "threads"), "loader");
  EXPECT_EQ(Read("SELECT count(*)", "stacks"), "0");
  EXPECT_EQ(Read("SELECT process", "threads"), kMine.ToHex());
}

TEST_F(Parquet, KernelsHaveThoseInPacks) {
  Write();
  EXPECT_EQ(Read("SELECT string_agg(name || start_ns, ' ' ORDER BY start_ns)", "kernels"),
            "a100 b\"200 packed300 packed320");
  EXPECT_FALSE(std::filesystem::exists(tables_ + "/kernel_packs.parquet"));
}

TEST_F(Parquet, TheSelectionAppliesWhereATableHasItsColumn) {
  Write({.from_ns = 100, .to_ns = 320, .processes = {kMine}, .device = kGpuA});
  EXPECT_EQ(Read("SELECT string_agg(name || start_ns, ' ' ORDER BY start_ns)", "kernels"), "a100 packed300");
  EXPECT_EQ(Read("SELECT value", "metrics"), "1.5");
  EXPECT_EQ(Read("SELECT name", "threads"), "loader");
}

TEST_F(Parquet, NothingIsWrittenOutsideOfTheFolder) {
  const auto summary = WriteParquet({recording_}, {}, folder_ / "absent");
  ASSERT_FALSE(summary.has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "absent"));
}

}  // namespace
}  // namespace gpusonde::store
