// SPDX-License-Identifier: Apache-2.0
#include "diagnose/recent_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "base/testing/units.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

class RecentStepsTest : public testing::Test {
 protected:
  // Steps that usually take 20 ms.
  void Add(int steps, int64_t length_ms) {
    for (; steps > 0; --steps) {
      const int64_t start_ns = now_ns_;
      now_ns_ += length_ms * kMs;
      recent_.Add({.type = {}, .start_ns = start_ns, .end_ns = now_ns_}, 20 * kMs);
    }
  }

  RecentSteps recent_;
  int64_t now_ns_ = 0;
};

TEST_F(RecentStepsTest, AreThoseOfSixSecondsOrAFewLongerOnes) {
  Add(1'000, 20);
  EXPECT_EQ(recent_.all().size(), 301u);
  Add(100, 2'000);
  EXPECT_EQ(recent_.all().size(), 20u);
}

TEST_F(RecentStepsTest, AreSelectedByTheirTimes) {
  EXPECT_TRUE(recent_.Within(kNanosPerSecond).empty());
  Add(100, 20);
  EXPECT_EQ(recent_.Within(kNanosPerSecond).size(), 50u);
  EXPECT_EQ(recent_.Since(now_ns_ - kNanosPerSecond).size(), 50u);
  EXPECT_EQ(recent_.Since(now_ns_ - kNanosPerSecond + 1).size(), 49u);
  EXPECT_TRUE(recent_.Since(now_ns_).empty());
}

TEST_F(RecentStepsTest, AreSummedBesideWhatIsUsual) {
  Add(30, 20);
  Add(1, 100);
  Add(19, 40);
  const RecentSteps::Range newest = recent_.Since(600 * kMs);
  EXPECT_EQ(SumOf(newest).ns, 860 * kMs);
  EXPECT_EQ(SumOf(newest).usual_ns, 400 * kMs);
  EXPECT_EQ(SumOf(newest).slowdown(), 2.15);
  EXPECT_EQ(SumWithoutLongest(newest).slowdown(), 2);
  EXPECT_EQ(QuickSumOf(newest).ns, 860 * kMs);
  EXPECT_EQ(QuickSumOf(newest).usual_ns, 400 * kMs);
  EXPECT_EQ(ComparedTime{}.slowdown(), 1);
}

TEST_F(RecentStepsTest, TheLikeliestOnsetIsWhereTheyBecameSlow) {
  Add(100, 20);
  EXPECT_TRUE(recent_.SinceLikeliestOnset(kNanosPerSecond, HUGE_VAL).empty());
  Add(20, 21);
  const int64_t onset_ns = now_ns_;
  Add(10, 40);
  const RecentSteps::Range slow = recent_.SinceLikeliestOnset(kNanosPerSecond, HUGE_VAL);
  ASSERT_FALSE(slow.empty());
  EXPECT_EQ(slow.front().start_ns, onset_ns) << "the slightly slow ones before don't count";
  EXPECT_EQ(slow.size(), 10u);
}

TEST_F(RecentStepsTest, TheOnsetIsLaterTheSlowerTheStepsAre) {
  Add(100, 20);
  Add(20, 22);
  const int64_t onset_ns = now_ns_;
  Add(3, 60);
  const RecentSteps::Range slow = recent_.SinceLikeliestOnset(kNanosPerSecond, HUGE_VAL);
  EXPECT_EQ(slow.size(), 23u) << "beside the mean of a second, of which little is slow";
  EXPECT_EQ(recent_.SinceLikeliestOnset(slow, HUGE_VAL).front().start_ns, onset_ns);
}

TEST_F(RecentStepsTest, ASingleLongStepIsNoOnsetIfItIsCapped) {
  Add(100, 20);
  Add(1, 400);
  Add(20, 20);
  const int64_t onset_ns = now_ns_;
  Add(10, 40);
  EXPECT_EQ(recent_.SinceLikeliestOnset(kNanosPerSecond, 3).front().start_ns, onset_ns);
  EXPECT_EQ(recent_.SinceLikeliestOnset(kNanosPerSecond, HUGE_VAL).front().start_ns, 2'000 * kMs);
}

}  // namespace
}  // namespace gpusonde::diagnose
