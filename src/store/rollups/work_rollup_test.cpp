// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/kernels.h"
#include "store/duckdb/appender.h"
#include "store/duckdb/schema.h"
#include "store/duckdb/testing/memory_connection.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/rollup.h"

namespace gpusonde::store {
namespace {

constexpr const char* kFile = "day";
constexpr int64_t kMinuteNs = 60 * kNanosPerSecond;
constexpr int64_t kHourStartNs = int64_t{20'000} * 24 * 60 * kMinuteNs;
constexpr int64_t kHourEndNs = kHourStartNs + 60 * kMinuteNs;

class WorkRollupTest : public duckdb::MemoryConnectionTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(MemoryConnectionTest::SetUp());
    ASSERT_TRUE(connection_->Run("ATTACH ':memory:' AS day").has_value());
    ASSERT_TRUE(duckdb::CreateTables(*connection_, kFile).has_value());
  }
  template <class Table>
  void Add(const Table& table, const std::vector<typename Table::Row>& rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    const model::Batch batch = builder.Take();
    const Status added = duckdb::AppendNew(*connection_, kFile, table.info(), {&batch, 1});
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }
  // A kernel of a second in each of these minutes of the hour.
  void AddKernels(const std::vector<int>& minutes) {
    std::vector<model::Kernel> kernels;
    for (const int minute : minutes) {
      const int64_t start_ns = kHourStartNs + minute * kMinuteNs;
      kernels.push_back({.process = {5, 1},
                         .device = {6, 0},
                         .start_ns = start_ns,
                         .end_ns = start_ns + kNanosPerSecond,
                         .name = "kernel"});
    }
    Add(model::kKernels, kernels);
  }
  Status Sum(const TimeRange& range) { return tables_->Sum(*connection_, kFile, range); }
  TimeRange Summed() {
    const Ask ask = [this](const SqlPart& sql) { return connection_->Ask(sql.text, sql.parameters); };
    return tables_->Read(ask, kFile).value().summed;
  }
  int64_t Number(const std::string& sql) {
    auto rows = connection_->Ask(sql).value();
    return rows->Next().value() ? rows->Int64(0) : -1;
  }
  int64_t KernelsOfTheHour() {
    return Number(
        "SELECT coalesce(sum(count), -1)::BIGINT FROM day.main.kernel_windows "
        "WHERE end_ns - start_ns = 3600000000000 AND name = 'kernel'");
  }

  const std::unique_ptr<const RollupTables> tables_ =
      WorkRollup([] { return std::numeric_limits<int64_t>::max(); });
};

// What isn't there after a kill is summed again from the end of the last minute on.
TEST_F(WorkRollupTest, TheLastMinuteOfAnHourIsSummedWithTheHour) {
  AddKernels({58, 59});
  // Their sum exceeds a BIGINT: the hour can't be summed.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t minute : {0, 1})
    Add(model::kKernelWindows, {{.start_ns = kHourStartNs + minute * kMinuteNs,
                                 .end_ns = kHourStartNs + (minute + 1) * kMinuteNs,
                                 .part = model::WorkPart::kAll,
                                 .process = {5, 2},
                                 .device = {6, 0},
                                 .name = "too many",
                                 .count = kMost,
                                 .sketch = {}}});
  EXPECT_FALSE(Sum({kHourStartNs, kHourEndNs}).has_value());
  EXPECT_EQ(Summed().to_ns, kHourEndNs - kMinuteNs);
  ASSERT_TRUE(connection_->Run("DELETE FROM day.main.kernel_windows WHERE name = 'too many'").has_value());
  ASSERT_TRUE(Sum({Summed().to_ns, kHourEndNs}).has_value());
  EXPECT_EQ(Summed().to_ns, kHourEndNs);
  EXPECT_EQ(KernelsOfTheHour(), 2);
}

TEST_F(WorkRollupTest, AnHourIsSummedBeforeTheMinutesAfterIt) {
  AddKernels({58, 61});
  ASSERT_TRUE(Sum({kHourStartNs, kHourStartNs + 59 * kMinuteNs}).has_value());
  EXPECT_EQ(KernelsOfTheHour(), -1);
  ASSERT_TRUE(Sum({kHourStartNs + 59 * kMinuteNs, kHourEndNs + 2 * kMinuteNs}).has_value());
  EXPECT_EQ(KernelsOfTheHour(), 1);
  ASSERT_TRUE(connection_->Run("DELETE FROM day.main.kernel_windows").has_value());
  AddKernels({59});
  ASSERT_TRUE(Sum({kHourStartNs, kHourEndNs + 60 * kMinuteNs}).has_value());
  EXPECT_EQ(KernelsOfTheHour(), 3) << "two hours, 2 and 1";
}

TEST_F(WorkRollupTest, AnHourThatWasUnderWayWhenSumsBeganIsSummedFromItsFirstMinuteOn) {
  AddKernels({3, 40, 59});
  ASSERT_TRUE(Sum({kHourStartNs + 30 * kMinuteNs, kHourEndNs}).has_value());
  EXPECT_EQ(KernelsOfTheHour(), 2);
  EXPECT_EQ(Summed().from_ns, kHourStartNs + 40 * kMinuteNs) << "not the begin of the hour";
}

}  // namespace
}  // namespace gpusonde::store
