// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/host_gaps.h"

#include <gtest/gtest.h>

namespace gpusonde::analyze {
namespace {

LaunchedRecord LaunchedAt(int64_t call_ns, int64_t start_ns) {
  LaunchedRecord record{.call_start_ns = call_ns, .call_end_ns = call_ns + 1, .has_call = 1};
  record.gpu.start_ns = start_ns;
  return record;
}

TEST(HostGaps, OnlyGapsCountInWhichTheHostHadLaunchedNothing) {
  HostGaps gaps;
  gaps.Add(LaunchedAt(150, 300), 100);    // launched after the previous work
  gaps.Add(LaunchedAt(390, 900), 400);    // launched before it had ended
  gaps.Add(LaunchedAt(950, 960), 1'000);  // overlaps the previous work
  LaunchedRecord unknown = LaunchedAt(0, 5'000);
  unknown.has_call = 0;
  gaps.Add(unknown, 2'000);
  gaps.Finish();
  EXPECT_EQ(gaps.short_ns, 200);
  EXPECT_EQ(gaps.short_count, 1);
  EXPECT_EQ(gaps.long_count, 0);
}

TEST(HostGaps, AMillisecondIsLongAndTheLongestAreKept) {
  HostGaps gaps;
  gaps.Add(LaunchedAt(10, kLongGapNs - 1), 0);
  int64_t sum_ns = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t begin_ns = (i + 1) * 1'000'000'000;
    const int64_t length_ns = kLongGapNs + (i * 7 % 20) * 1'000;
    sum_ns += length_ns;
    gaps.Add(LaunchedAt(begin_ns + 1, begin_ns + length_ns), begin_ns);
  }
  gaps.Finish();
  EXPECT_EQ(gaps.short_ns, kLongGapNs - 1);
  EXPECT_EQ(gaps.long_count, 20);
  EXPECT_EQ(gaps.long_ns, sum_ns);
  ASSERT_EQ(gaps.longest.size(), HostGaps::kLongest);
  for (size_t i = 0; i < HostGaps::kLongest; ++i)
    EXPECT_EQ(gaps.longest[i].end_ns - gaps.longest[i].begin_ns,
              kLongGapNs + (19 - static_cast<int64_t>(i)) * 1'000);
}

}  // namespace
}  // namespace gpusonde::analyze
