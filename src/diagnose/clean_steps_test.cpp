// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clean_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/testing/units.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr Id128 kTrains{1, 1}, kValidates{1, 2};

class CleanStepsTest : public testing::Test {
 protected:
  TimedStep Next(double length_ms, const Id128& type = kTrains) {
    const int64_t start_ns = now_ns_;
    now_ns_ += std::llround(length_ms * kMs);
    return {.type = type, .start_ns = start_ns, .end_ns = now_ns_};
  }
  void Learn(int steps, double length_ms, const Id128& type = kTrains) {
    for (; steps > 0; --steps) clean_.Learn(Next(length_ms, type));
  }

  CleanSteps clean_;
  int64_t now_ns_ = kNanosPerSecond;
};

TEST_F(CleanStepsTest, OfATypeAreKnownOnceThereAreAFew) {
  Learn(3, 20);
  EXPECT_FALSE(clean_.Knows(kTrains));
  EXPECT_EQ(clean_.learnt(), 0u);
  EXPECT_EQ(clean_.LongestMeanNs(), 0);
  Learn(5, 20);
  Learn(3, 90, kValidates);
  EXPECT_TRUE(clean_.Knows(kTrains));
  EXPECT_FALSE(clean_.Knows(kValidates));
  EXPECT_EQ(clean_.learnt(), 5u);
  EXPECT_EQ(clean_.newest().size(), 5u);
  EXPECT_EQ(clean_.LongestMeanNs(), 20 * kMs);
  Learn(1, 90, kValidates);
  EXPECT_EQ(clean_.LongestMeanNs(), 90 * kMs);
}

TEST_F(CleanStepsTest, AreComparedWithThoseOfTheirType) {
  Learn(100, 20);
  Learn(100, 80, kValidates);
  Learn(1, 40);
  EXPECT_NEAR(clean_.RatioOf(clean_.newest().back()), 2, 0.05);
  EXPECT_NEAR(clean_.newest().back().log_ratio, std::log(2), 0.05);
  EXPECT_EQ(clean_.newest().front().log_ratio, 0);
}

TEST_F(CleanStepsTest, AreReleasedInOrderOnceTwelveHaveFollowed) {
  for (int i = 0; i < 12; ++i) {
    clean_.Hold(Next(20));
    EXPECT_FALSE(clean_.Release().has_value());
  }
  clean_.Hold(Next(20));
  const std::optional<TimedStep> first = clean_.Release();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->start_ns, kNanosPerSecond);
  EXPECT_FALSE(clean_.Release().has_value());
  clean_.DropHeld();
  clean_.Hold(Next(20));
  EXPECT_FALSE(clean_.Release().has_value());
  EXPECT_EQ(clean_.learnt(), 0u) << "whoever releases them learns them";
}

TEST_F(CleanStepsTest, OfTheFirstSecondsAreForgottenIfTheyWereSlowOnceThereAreOthers) {
  Learn(100, 30);
  EXPECT_FALSE(clean_.is_warm_up());
  Learn(200, 20);
  clean_.ForgetSlowStart();
  EXPECT_EQ(clean_.newest().size(), 297u) << "ten seconds are not yet known";
  Learn(200, 20);
  clean_.ForgetSlowStart();
  EXPECT_EQ(clean_.newest().size(), 400u);
  EXPECT_EQ(clean_.newest().front().length_ns, 20 * kMs);
}

TEST_F(CleanStepsTest, OfTheFirstSecondsStayIfTheyWereAlike) {
  EXPECT_TRUE(clean_.is_warm_up());
  Learn(600, 20);
  clean_.ForgetSlowStart();
  EXPECT_EQ(clean_.newest().size(), 597u);
}

TEST_F(CleanStepsTest, BeforeATimeAreForgottenAndTheOthersComparedAnew) {
  Learn(50, 40);
  Learn(50, 200, kValidates);
  const int64_t faster_ns = now_ns_ + 1;
  Learn(51, 20);
  clean_.ForgetBefore(faster_ns);
  EXPECT_FALSE(clean_.Knows(kValidates));
  EXPECT_EQ(clean_.newest().size(), 51u);
  EXPECT_EQ(clean_.LongestMeanNs(), 20 * kMs);
  EXPECT_TRUE(std::ranges::all_of(clean_.newest(), [](const auto& step) { return step.log_ratio == 0; }));
}

}  // namespace
}  // namespace gpusonde::diagnose
