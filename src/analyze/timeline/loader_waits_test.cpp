// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/loader_waits.h"

#include <gtest/gtest.h>

#include <utility>

namespace gpusonde::analyze {
namespace {

// Work at a time, launched then.
LaunchedRecord At(int64_t start_ns, bool late_launch = true) {
  LaunchedRecord record;
  record.gpu.start_ns = start_ns;
  record.gpu.end_ns = start_ns + 10;
  record.call_start_ns = late_launch ? start_ns - 1 : 0;
  record.has_call = 1;
  return record;
}

TEST(LoaderWaits, OnlyIdleTimeWithinWaitsCounts) {
  LoaderFollower follower({{100, 200}, {300, 400}, {1000, 1100}}, 0);
  follower.Add(At(150), 50);           // 100 to 150
  follower.Add(At(500), 160);          // 160 to 200, 300 to 400
  follower.Add(At(900), 510);          // none
  follower.Add(At(1050, false), 910);  // was launched before: the device waited for something else
  const LoaderWaits waits = std::move(follower).Finish();
  EXPECT_EQ(waits.count, 3);
  EXPECT_EQ(waits.total_ns, 300);
  EXPECT_EQ(waits.idle_ns, 50 + 40 + 100);
  ASSERT_EQ(waits.longest.size(), 3u);
  EXPECT_EQ(waits.longest[0].begin_ns, 300);
  EXPECT_EQ(waits.longest[1].end_ns, 150);
  EXPECT_EQ(waits.longest[2].begin_ns, 160);
}

TEST(LoaderWaits, AreByTheClockOfTheDevice) {
  LoaderFollower follower({{100, 200}}, 1000);
  follower.Add(At(1150), 1050);
  EXPECT_EQ(std::move(follower).Finish().idle_ns, 50);
}

}  // namespace
}  // namespace gpusonde::analyze
