// SPDX-License-Identifier: Apache-2.0
#include "inject/governor.h"

#include <gtest/gtest.h>

namespace gpusonde::inject {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Governor, DoesNotSleepAfterAWindowWithinTheBudget) {
  EXPECT_EQ(Governor::SleepAfter(2000 * kMs, 0), 0U);
  EXPECT_EQ(Governor::SleepAfter(2000 * kMs, 10 * kMs), 0U);  // 0.5 %
}

TEST(Governor, SleepsUntilWindowAndSleepAreWithinTheBudget) {
  // 2 % for 2 s: 8 s in all make it 0.5 %.
  EXPECT_EQ(Governor::SleepAfter(2000 * kMs, 40 * kMs), 6000 * kMs);
}

TEST(Governor, NeverSleepsLongerThanAMinute) {
  EXPECT_EQ(Governor::SleepAfter(2000 * kMs, 2000 * kMs), Governor::kMaxSleepNs);
}

}  // namespace
}  // namespace gpusonde::inject
