// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/lanes.h"

#include <gtest/gtest.h>

namespace gpusonde::exporters {
namespace {

TEST(Lanes, SpansThatNestOrFollowEachOtherShareOne) {
  Lanes lanes;
  EXPECT_EQ(lanes.Place(0, 100), 0u);
  EXPECT_EQ(lanes.Place(0, 50), 0u);
  EXPECT_EQ(lanes.Place(50, 100), 0u);
  EXPECT_EQ(lanes.Place(100, 100), 0u);
  EXPECT_EQ(lanes.Place(100, 200), 0u);
}

TEST(Lanes, SpansThatOverlapDoNot) {
  Lanes lanes;
  EXPECT_EQ(lanes.Place(0, 100), 0u);
  EXPECT_EQ(lanes.Place(50, 150), 1u);
  EXPECT_EQ(lanes.Place(60, 170), 2u);
  EXPECT_EQ(lanes.Place(100, 150), 0u);
  EXPECT_EQ(lanes.Place(160, 300), 0u);
}

TEST(Lanes, ThereAreNeverMoreThanTheirMaximum) {
  Lanes lanes;
  size_t most = 0;
  for (int64_t i = 0; i < 1000; ++i) most = std::max(most, lanes.Place(i, 10'000 + i));
  EXPECT_EQ(most, Lanes::kMaxLanes - 1);
}

}  // namespace
}  // namespace gpusonde::exporters
