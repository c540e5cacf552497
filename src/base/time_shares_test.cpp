// SPDX-License-Identifier: Apache-2.0
#include "base/time_shares.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

constexpr int32_t kUser = 1000, kOther = 1001;
constexpr int64_t kNow = 1'000'000;

TEST(TimeShares, AUserHasAShareOfEachWindowAndPaysForLongWork) {
  TimeShares shares(100, 10, 50);
  ASSERT_TRUE(shares.HasTime(kUser, kNow));
  shares.Spend(kUser, 35);
  EXPECT_FALSE(shares.HasTime(kUser, kNow + 99));
  EXPECT_TRUE(shares.HasTime(kOther, kNow));
  EXPECT_FALSE(shares.HasTime(kUser, kNow + 200)) << "15 are still to be paid";
  EXPECT_TRUE(shares.HasTime(kUser, kNow + 300));
  shares.Spend(kUser, 4);
  EXPECT_TRUE(shares.HasTime(kUser, kNow + 300));
  shares.Spend(kUser, 2);
  EXPECT_FALSE(shares.HasTime(kUser, kNow + 300));
}

TEST(TimeShares, UsersTogetherHaveAShareOfEachWindow) {
  TimeShares shares(100, 10, 50);
  int32_t users = 0;
  for (; shares.HasTime(users, kNow); ++users) shares.Spend(users, 10);
  EXPECT_EQ(users, 5);
  EXPECT_TRUE(shares.HasTime(users, kNow + 100));
}

}  // namespace
}  // namespace gpusonde
