// SPDX-License-Identifier: Apache-2.0
#include "diagnose/open_incident.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/testing/units.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

// An incident that begins after a second of clean steps. Steps usually take 20 ms, exactly.
class OpenIncidentTest : public testing::Test {
 protected:
  OpenIncidentTest() {
    Add(50, 20);
    incident_ = {.onset_ns = now_ns_, .evident_ns = now_ns_};
  }
  void Add(int steps, int64_t length_ms) {
    for (; steps > 0; --steps) {
      const int64_t start_ns = now_ns_;
      now_ns_ += length_ms * kMs;
      recent_.Add({.type = {}, .start_ns = start_ns, .end_ns = now_ns_}, 20 * kMs);
      if (incident_.onset_ns != 0) incident_.Add(recent_.newest());
    }
  }
  // As far as all clean steps take the same time.
  std::optional<int64_t> RecoveredSince() const {
    CleanSteps clean;
    for (int64_t i = 0; i < 100; ++i)
      clean.Learn({.type = {}, .start_ns = i * 20 * kMs, .end_ns = (i + 1) * 20 * kMs});
    return incident_.RecoveredSince(recent_, Thresholds(clean));
  }

  RecentSteps recent_;
  OpenIncident incident_;
  int64_t now_ns_ = 0;
};

TEST_F(OpenIncidentTest, StepsAreSlowIfTheyAreCloserToItsMean) {
  Add(20, 60);
  EXPECT_EQ(incident_.Excess(), 2);
  EXPECT_EQ(incident_.SlowUntil(recent_), now_ns_);
  const int64_t slow_until_ns = now_ns_;
  Add(1, 30);
  EXPECT_FALSE(incident_.IsSlow(recent_.newest()));
  EXPECT_EQ(incident_.SlowUntil(recent_), slow_until_ns);
}

TEST_F(OpenIncidentTest, OfTheSmallestExcessKeepsAMargin) {
  Add(20, 20);
  EXPECT_NEAR(incident_.Excess(), 0.1, 1e-9);
  EXPECT_EQ(incident_.SlowUntil(recent_), INT64_MAX);
}

TEST_F(OpenIncidentTest, HasRecoveredAfterThreeSecondsAsBefore) {
  Add(20, 60);
  const int64_t calm_ns = now_ns_;
  Add(100, 20);
  EXPECT_EQ(RecoveredSince(), std::nullopt);
  Add(50, 20);
  EXPECT_EQ(RecoveredSince(), calm_ns);
}

TEST_F(OpenIncidentTest, HasNotRecoveredWhileAFifthOfTheStepsIsSlow) {
  Add(20, 60);
  for (int i = 0; i < 60; ++i) {
    Add(1, 60);
    Add(4, 20);
    ASSERT_EQ(RecoveredSince(), std::nullopt) << i;
  }
}

TEST_F(OpenIncidentTest, IsWorseWhenTheLastSecondLosesThreeTimesAsMuch) {
  Add(100, 24);
  EXPECT_EQ(incident_.WorseSince(recent_), std::nullopt);
  const int64_t worse_ns = now_ns_;
  Add(10, 100);
  EXPECT_EQ(incident_.WorseSince(recent_), worse_ns);
}

TEST_F(OpenIncidentTest, ThatIsYoungIsNotWorse) {
  Add(10, 24);
  Add(10, 100);
  EXPECT_EQ(incident_.WorseSince(recent_), std::nullopt);
}

TEST_F(OpenIncidentTest, ThatIsSmallIsFollowedByALargeOne) {
  Add(120, 24);
  EXPECT_TRUE(incident_.FindLarge(recent_).empty());
  const int64_t large_ns = now_ns_;
  Add(2, 60);
  const RecentSteps::Range large = incident_.FindLarge(recent_);
  ASSERT_EQ(large.size(), 2);
  EXPECT_EQ(large.front().start_ns, large_ns);
}

TEST_F(OpenIncidentTest, ThatHadAPartAsSlowGoesOn) {
  Add(60, 24);
  Add(9, 60);
  Add(60, 24);
  Add(9, 60);
  EXPECT_LT(incident_.time.slowdown(), 1.5);
  EXPECT_TRUE(incident_.FindLarge(recent_).empty());
}

TEST_F(OpenIncidentTest, ThatIsLargeFromItsOnsetGoesOn) {
  Add(10, 60);
  EXPECT_TRUE(incident_.FindLarge(recent_).empty());
}

TEST_F(OpenIncidentTest, ThatIsLargeGoesOn) {
  Add(100, 32);
  Add(10, 200);
  EXPECT_TRUE(incident_.FindLarge(recent_).empty());
}

TEST_F(OpenIncidentTest, OnlyUnknownStepsForTenSecondsEndIt) {
  const auto unknown = [&](int steps, int64_t length_ms) {
    bool ends = false;
    for (; steps > 0; --steps) {
      ends = incident_.AddUnknown({.type = {}, .start_ns = now_ns_, .end_ns = now_ns_ + length_ms * kMs});
      now_ns_ += length_ms * kMs;
    }
    return ends;
  };
  Add(20, 60);
  EXPECT_FALSE(unknown(9, 2'000)) << "too few";
  EXPECT_TRUE(unknown(1, 2'000));
  Add(1, 60);
  const int64_t again_ns = now_ns_;
  EXPECT_FALSE(unknown(99, 100)) << "too short";
  EXPECT_TRUE(unknown(1, 100));
  EXPECT_EQ(incident_.unknown_since_ns, again_ns);
}

TEST_F(OpenIncidentTest, AnOverrunCountsAsLongAsTheStepWasUnlessItFollowsAsAKnownOne) {
  const TimedStep step{.type = {}, .start_ns = now_ns_, .end_ns = now_ns_ + 900 * kMs};
  incident_.time = {.ns = 300 * kMs, .usual_ns = 20 * kMs};
  incident_.overruns = true;
  OpenIncident of_known = incident_;
  incident_.EndOverrun(step, false);
  EXPECT_FALSE(incident_.overruns);
  EXPECT_EQ(incident_.time.slowdown(), 45);
  of_known.EndOverrun(step, true);
  EXPECT_EQ(of_known.time.ns, 0);
  EXPECT_FALSE(of_known.overruns);
}

}  // namespace
}  // namespace gpusonde::diagnose
