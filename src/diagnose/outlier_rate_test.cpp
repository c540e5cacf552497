// SPDX-License-Identifier: Apache-2.0
#include "diagnose/outlier_rate.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr double kCountedSecond = 1e9;

TEST(OutlierRate, OfNoStepsIsNeverExceeded) { EXPECT_FALSE(OutlierRate().IsExceededBy(10, kNanosPerSecond)); }

TEST(OutlierRate, IsExceededByTwoInASecondAfterAMinuteWithoutAnyButNotByOne) {
  OutlierRate rate;
  for (int second = 0; second < 60; ++second) rate.Count(kCountedSecond, false);
  EXPECT_FALSE(rate.IsExceededBy(1, kNanosPerSecond));
  EXPECT_TRUE(rate.IsExceededBy(2, kNanosPerSecond));
}

TEST(OutlierRate, IsNotExceededByAsManyAsBefore) {
  OutlierRate rate;
  for (int second = 0; second < 60; ++second) {
    rate.Count(kCountedSecond / 2, true);
    rate.Count(kCountedSecond / 2, true);
  }
  EXPECT_FALSE(rate.IsExceededBy(4, kNanosPerSecond));
  EXPECT_TRUE(rate.IsExceededBy(9, kNanosPerSecond));
}

TEST(OutlierRate, LeavesOutStepsThatTurnOutNotToBeClean) {
  OutlierRate rate;
  for (int second = 0; second < 60; ++second) rate.Count(kCountedSecond, second >= 50);
  EXPECT_FALSE(rate.IsExceededBy(2, kNanosPerSecond));
  for (int i = 0; i < 10; ++i) rate.Uncount(kCountedSecond, true);
  EXPECT_TRUE(rate.IsExceededBy(2, kNanosPerSecond));
}

TEST(OutlierRate, CountsOldStepsHalf) {
  OutlierRate rate;
  for (int second = 0; second < 300; ++second) rate.Count(kCountedSecond, true);
  for (int second = 0; second < 5'000; ++second) rate.Count(kCountedSecond, false);
  EXPECT_TRUE(rate.IsExceededBy(2, kNanosPerSecond));
}

}  // namespace
}  // namespace gpusonde::diagnose
