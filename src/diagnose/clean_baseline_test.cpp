// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clean_baseline.h"

#include <gtest/gtest.h>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

struct CleanBaselineTest : testing::Test {
  // Adds consecutive steps of 100 ms that run for `cpu_ns`.
  void Add(const Id128& type, int count, double cpu_ns, bool observed = true) {
    for (int i = 0; i < count; ++i) {
      AccountedStep accounted{.step = {.type = type, .start_ns = now_ns, .end_ns = now_ns + 100 * kMs},
                              .from_ns = now_ns,
                              .observed = observed};
      accounted.path.states[State::kCpu] = cpu_ns;
      baseline.Add(accounted);
      now_ns += 100 * kMs;
    }
  }
  // Adds consecutive steps of 100 ms, as far as they count here, that run for 60 ms and wait for a CPU.
  void AddDisturbed(const Id128& type, int count, double run_queue_ns) {
    for (int i = 0; i < count; ++i) {
      AccountedStep accounted{.step = {.type = type, .start_ns = now_ns, .end_ns = now_ns + 100 * kMs},
                              .from_ns = now_ns,
                              .observed = true};
      accounted.path.states[State::kCpu] = 60e6;
      accounted.path.states[State::kRunQueue] = run_queue_ns;
      baseline.Add(accounted);
      now_ns += 100 * kMs;
    }
  }
  // Since when the program is no longer disturbed.
  std::optional<int64_t> UndisturbedSince() const {
    const auto shortened = baseline.FindShortened();
    return shortened.has_value() && shortened->disturbed ? std::optional(shortened->since_ns) : std::nullopt;
  }
  double UsualCpu(const Id128& type, int64_t count) const {
    PathAccount sum;
    baseline.AddUsual(type, count, sum);
    return sum.states[State::kCpu];
  }

  CleanBaseline baseline;
  int64_t now_ns = kBegin;
  const Id128 one{1, 1}, other{1, 2};
};

TEST_F(CleanBaselineTest, RecentAreTenSecondsOfStepsOrThirtyTwo) {
  EXPECT_EQ(baseline.RecentSince(), INT64_MAX);
  Add(one, 20, 4e6);
  EXPECT_EQ(baseline.RecentSince(), kBegin) << "as many as there are";
  const int64_t other_ns = now_ns;
  Add(other, 50, 4e6);
  EXPECT_EQ(baseline.RecentSince(), kBegin);
  Add(other, 50, 4e6);
  EXPECT_EQ(baseline.RecentSince(), other_ns);
  now_ns += 20 * kNanosPerSecond;
  const int64_t late_ns = now_ns;
  Add(one, 20, 4e6);
  EXPECT_EQ(baseline.RecentSince(), other_ns + 8'800 * kMs) << "twelve of the others";
  Add(one, 12, 4e6);
  EXPECT_EQ(baseline.RecentSince(), late_ns);
}

TEST_F(CleanBaselineTest, WhatStepsUsuallyDoIsTheMeanOfTheirType) {
  Add(one, 10, 4e6);
  Add(one, 10, 6e6);
  Add(other, 5, 50e6);
  EXPECT_DOUBLE_EQ(UsualCpu(one, 3), 3 * 5e6);
  EXPECT_DOUBLE_EQ(UsualCpu(other, 2), 2 * 50e6);
  EXPECT_DOUBLE_EQ(UsualCpu({9, 9}, 2), 2 * 5e6) << "an unknown type is compared with a known one";
}

TEST_F(CleanBaselineTest, StepsFromBeforeSignalsWereObservedGoWhenThereAreOthers) {
  Add(one, 20, 0, false);
  Add(one, 3, 5e6);
  EXPECT_LT(UsualCpu(one, 1), 1e6) << "three say too little";
  Add(one, 1, 5e6);
  EXPECT_DOUBLE_EQ(UsualCpu(one, 1), 5e6);
  Add(other, 20, 2e6, false);
  EXPECT_DOUBLE_EQ(UsualCpu(other, 1), 2e6) << "of a program without signals";
}

TEST_F(CleanBaselineTest, IsEmptyWithoutSteps) {
  EXPECT_TRUE(baseline.empty());
  EXPECT_EQ(UsualCpu(one, 3), 0);
}

TEST_F(CleanBaselineTest, KeepsTenSecondsOfSteps) {
  Add(one, 100, 1e6);
  Add(one, 100, 3e6);
  EXPECT_GT(UsualCpu(one, 1), 2.9e6);
  EXPECT_LT(UsualCpu(one, 1), 3e6) << "the step that ended 10 s ago";
}

TEST_F(CleanBaselineTest, StepsSinceTheOnsetAreDropped) {
  Add(one, 20, 1e6);
  const int64_t onset_ns = now_ns;
  Add(one, 20, 9e6);
  Add(other, 1, 9e6);
  baseline.DropAfter(onset_ns);
  EXPECT_DOUBLE_EQ(UsualCpu(one, 1), 1e6);
  EXPECT_DOUBLE_EQ(UsualCpu(other, 1), 1e6) << "none of its steps is left";
  baseline.DropAfter(0);
  EXPECT_TRUE(baseline.empty());
}

TEST_F(CleanBaselineTest, TheCalmPeriodIsTheMinuteBeforeTheOnset) {
  Add(one, 1000, 1e6);
  baseline.SetCalm(now_ns, 0);
  EXPECT_EQ(baseline.calm().from_ns, now_ns - 60 * kNanosPerSecond);
  EXPECT_EQ(baseline.calm().to_ns, now_ns);
}

TEST_F(CleanBaselineTest, TheCalmPeriodBeginsWithTheFirstCleanStep) {
  Add(one, 200, 1e6);
  baseline.SetCalm(now_ns, 0);
  EXPECT_EQ(baseline.calm().from_ns, kBegin);
}

TEST_F(CleanBaselineTest, AfterLessThanFiveSecondsOfCalmTheEarlierCalmCounts) {
  Add(one, 200, 1e6);
  const int64_t first_onset_ns = now_ns;
  baseline.SetCalm(first_onset_ns, 0);
  const int64_t over_ns = first_onset_ns + 30 * kNanosPerSecond;
  baseline.SetCalm(over_ns + 4 * kNanosPerSecond, over_ns);
  EXPECT_EQ(baseline.calm().to_ns, first_onset_ns);
  baseline.SetCalm(over_ns + 6 * kNanosPerSecond, over_ns);
  EXPECT_EQ(baseline.calm().from_ns, over_ns);
  EXPECT_EQ(baseline.calm().to_ns, over_ns + 6 * kNanosPerSecond);
}

TEST_F(CleanBaselineTest, ADisturbanceFromTheBeginningHasEndedAfterThreeSecondsWithoutIt) {
  AddDisturbed(one, 60, 30e6);
  const int64_t ended_ns = now_ns;
  AddDisturbed(one, 25, 0);
  EXPECT_EQ(UndisturbedSince(), std::nullopt) << "the pauses between pulses are as long";
  AddDisturbed(one, 5, 0);
  EXPECT_EQ(UndisturbedSince(), ended_ns);
  baseline.ForgetBefore(ended_ns);
  EXPECT_EQ(UndisturbedSince(), std::nullopt);
  PathAccount sum;
  baseline.AddUsual(one, 1, sum);
  EXPECT_EQ(sum.states[State::kRunQueue], 0);
  AddDisturbed(one, 100, 0);
  baseline.SetCalm(now_ns, 0);
  EXPECT_EQ(baseline.calm().from_ns, ended_ns) << "signals weren't normal before";
}

TEST_F(CleanBaselineTest, WhatTheProgramDoesLessIsNoEndedDisturbance) {
  Add(one, 60, 80e6);
  Add(one, 60, 40e6);
  EXPECT_EQ(UndisturbedSince(), std::nullopt);
  AddDisturbed(other, 60, 10e6);
  AddDisturbed(other, 60, 0);
  EXPECT_EQ(UndisturbedSince(), std::nullopt) << "a fifth is little";
}

TEST_F(CleanBaselineTest, AnEndedDisturbanceIsSeenWithinEachType) {
  AddDisturbed(one, 60, 90e6);
  AddDisturbed(other, 60, 0);
  EXPECT_EQ(UndisturbedSince(), std::nullopt) << "the program does something else";
}

TEST_F(CleanBaselineTest, ClearForgetsStepsAndWhenTheyBegan) {
  Add(one, 100, 1e6);
  baseline.Clear();
  EXPECT_TRUE(baseline.empty());
  const int64_t again_ns = now_ns;
  Add(one, 100, 2e6);
  baseline.SetCalm(now_ns, 0);
  EXPECT_EQ(baseline.calm().from_ns, again_ns);
}

}  // namespace
}  // namespace gpusonde::diagnose
