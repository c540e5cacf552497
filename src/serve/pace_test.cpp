// SPDX-License-Identifier: Apache-2.0
#include "serve/pace.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace gpusonde::serve {
namespace {

TEST(Pace, FewAgentsSendEveryTenSeconds) {
  Pace pace(2);
  EXPECT_EQ(pace.PauseMs(1000), Pace::kMinPauseMs) << "nothing was committed yet";
  pace.Add(50 * kNanosPerMilli);
  EXPECT_EQ(pace.PauseMs(1), Pace::kMinPauseMs);
  EXPECT_EQ(pace.PauseMs(100), Pace::kMinPauseMs) << "100 x 50 ms in 10 s are a quarter of two CPUs";
}

TEST(Pace, CommitsOfManyAgentsTakeAQuarterOfTheCpus) {
  Pace pace(2);
  pace.Add(50 * kNanosPerMilli);
  EXPECT_EQ(pace.PauseMs(200), 20'000);
  EXPECT_EQ(Pace(8).PauseMs(200), Pace::kMinPauseMs);
  EXPECT_EQ(pace.PauseMs(1'000'000), Pace::kMaxPauseMs);
}

TEST(Pace, FollowsWhatCommitsTake) {
  Pace pace(2);
  pace.Add(50 * kNanosPerMilli);
  for (int i = 0; i < 1000; ++i) pace.Add(100 * kNanosPerMilli);
  EXPECT_NEAR(static_cast<double>(pace.PauseMs(200)), 40'000, 100);
}

}  // namespace
}  // namespace gpusonde::serve
