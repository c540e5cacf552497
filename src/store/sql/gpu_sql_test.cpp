// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_sql.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/units.h"
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

}  // namespace
}  // namespace gpusonde::store
