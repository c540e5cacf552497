// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_sql.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"
#include "base/testing/units.h"
#include "spool/spool.h"
#include "store/memory_limit.h"
#include "store/recordings/recording.h"
#include "store/sql/testing/gpu_store.h"

namespace gpusonde::store {
namespace {

class GpuSql : public GpuSqlTest {
 protected:
  std::vector<TimeRange> Slices(const TimeRange& range, int64_t rows) {
    auto slices = ReadSlices(Asking(*store_), {}, range, rows);
    EXPECT_TRUE(slices.has_value()) << slices.error().message;
    return slices.value_or(std::vector<TimeRange>());
  }
};

TEST_F(GpuSql, SlicesAreAdjacentAndHoldNoMoreRowsThanTheyMay) {
  // An hour of one kernel a second with a burst of 20,000 in ten seconds, and one from a broken clock.
  std::vector<TimeRange> times;
  for (int64_t second = 0; second < 3'600; ++second)
    times.push_back({second * kSecond, second * kSecond + 1'000});
  times.push_back({int64_t{1} << 61, (int64_t{1} << 61) + 1});
  AddKernels(times);
  for (int64_t second = 1'800; second < 1'810; ++second) AddPack(second * kSecond, 2'000);
  constexpr TimeRange kRange{0, int64_t{1} << 62};
  constexpr int64_t kRows = 3'000;
  const std::vector<TimeRange> slices = Slices(kRange, kRows);
  ASSERT_FALSE(slices.empty());
  EXPECT_EQ(slices.back().to_ns, kRange.to_ns);
  int64_t all = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i].from_ns, i == 0 ? kRange.from_ns : slices[i - 1].to_ns);
    const int64_t rows = Count(GpuWork({}, slices[i], WorkIn::kStartsIn));
    EXPECT_LE(rows, kRows) << slices[i].from_ns << " to " << slices[i].to_ns;
    all += rows;
  }
  EXPECT_EQ(all, 3'601 + 20'000);
}

TEST_F(GpuSql, WhatFitsIsOneSlice) {
  AddKernels({{1, 2}, {3, 4}});
  EXPECT_THAT(Slices({0, 100}, 2), testing::SizeIs(1));
}

// A statement reads the lists of the packs in its range, however many lie beside them.
TEST(GpuSqlOfARecording, ASecondOfAQuarterOfAnHourIsReadIn128MiB) {
  constexpr int64_t kSeconds = 900, kKernels = 10'000;
  const TempFolder folder;
  const std::string spool = folder / "run.spool", path = folder / "run.sonde";
  {
    auto writer = spool::Writer::Open(spool).value();
    std::minstd_rand random(1);
    model::KernelPack pack{.process = kSqlProcess, .device = kDevice, .session = 1, .count = kKernels};
    for (int64_t i = 0; i < kKernels; ++i) {
      pack.offsets_ns.push_back(i * (kSecond / kKernels) + static_cast<int64_t>(random() % 50'000));
      pack.durations_ns.push_back(static_cast<int64_t>(random() % 50'000));
      pack.correlations.push_back(i);
    }
    for (int64_t second = 0; second < kSeconds; ++second) {
      pack.start_ns = second * kSecond;
      pack.end_ns = pack.start_ns + kSecond;
      model::BatchBuilder builder(model::kKernelPacks);
      builder.Append(pack);
      ASSERT_TRUE(writer.Append(builder.Take()).has_value());
    }
    ASSERT_TRUE(writer.Sync().has_value());
  }
  ASSERT_TRUE(WriteRecording(spool, path).has_value());
  SetMemoryLimit(kMinMemoryLimit);
  const auto store = OpenRecordings({path}).value();
  SetMemoryLimit(0);
  SqlPart sql{"SELECT count(*), sum(end_ns - start_ns)::BIGINT FROM ", {}};
  sql += GpuTimes({800 * kSecond, 801 * kSecond}, {" AND end_ns % 2 >= 0", {}});
  const auto rows = store->Query(sql.text, sql.parameters);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  ASSERT_TRUE((*rows)->Next().value_or(false));
  EXPECT_NEAR(static_cast<double>((*rows)->Int64(0)), kKernels, 10);
}

}  // namespace
}  // namespace gpusonde::store
