// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector_thresholds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/testing/units.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

// Clean steps whose lengths vary by these log ratios.
CleanSteps StepsOf(int count, const std::function<double(int step)>& log_ratio) {
  CleanSteps clean;
  int64_t now_ns = kNanosPerSecond;
  for (int i = 0; i < count; ++i) {
    const int64_t start_ns = now_ns;
    now_ns += std::llround(20 * kMs * std::exp(log_ratio(i)));
    clean.Learn({.type = {1, 1}, .start_ns = start_ns, .end_ns = now_ns});
  }
  return clean;
}

// Normally distributed; each value comes `repeats` times in a row.
CleanSteps RandomSteps(int count, double spread, int repeats = 1) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  double value = 0;
  return StepsOf(count, [&](int step) {
    if (step % repeats == 0) value = spread * normal(random);
    return value;
  });
}

// The CUSUMs after steps that are all this much longer than usual.
Cusums After(int steps, double ratio, const Thresholds& thresholds) {
  Cusums cusums;
  for (; steps > 0; --steps) cusums.Add(thresholds.AddendsOf(std::log(ratio), ratio));
  return cusums;
}

TEST(Thresholds, AreExceededSoonByLargeShiftsAndLaterBySmallOnes) {
  const Thresholds thresholds(RandomSteps(500, 0.05));
  EXPECT_FALSE(thresholds.AreExceededBy(After(1'000, 1, thresholds)));
  EXPECT_FALSE(thresholds.AreExceededBy(After(1, 10, thresholds))) << "a single step never does";
  EXPECT_TRUE(thresholds.AreExceededBy(After(3, 1.5, thresholds)));
  EXPECT_FALSE(thresholds.AreExceededBy(After(3, 1.1, thresholds)));
  EXPECT_TRUE(thresholds.AreExceededBy(After(30, 1.1, thresholds)));
}

TEST(Thresholds, AreNearedBeforeTheyAreExceeded) {
  const Thresholds thresholds(RandomSteps(500, 0.05));
  int steps = 1;
  while (!thresholds.AreNearedBy(After(steps, 1.1, thresholds))) ++steps;
  EXPECT_FALSE(thresholds.AreExceededBy(After(steps, 1.1, thresholds)));
  EXPECT_TRUE(thresholds.AreExceededBy(After(2 * steps, 1.1, thresholds)));
}

TEST(Thresholds, AreHigherWhereStepsVaryInClustersOrAreFew) {
  const auto steps_to_exceed = [](const Thresholds& thresholds) {
    int steps = 1;
    while (!thresholds.AreExceededBy(After(steps, 1.15, thresholds))) ++steps;
    return steps;
  };
  const int usually = steps_to_exceed(Thresholds(RandomSteps(500, 0.05)));
  EXPECT_GT(steps_to_exceed(Thresholds(RandomSteps(500, 0.05, 8))), usually);
  EXPECT_GT(steps_to_exceed(Thresholds(RandomSteps(24, 0.05))), usually);
}

TEST(Thresholds, OfMeansShrinkWithTheirNumberOfStepsUnlessTheseDrift) {
  const Thresholds independent(RandomSteps(1'000, 0.1));
  EXPECT_NEAR(independent.SpreadOf(1), 0.1, 0.02);
  EXPECT_NEAR(independent.SpreadOf(16) / independent.SpreadOf(1), 0.25, 0.08);
  EXPECT_NEAR(independent.SpreadOf(1'024) / independent.SpreadOf(64), 0.25, 0.2) << "extrapolated";
  EXPECT_LT(independent.HighestMeanOf(64), 1.05);
  const Thresholds drift(StepsOf(1'000, [](int step) { return 0.1 * std::sin(step / 80.0); }));
  EXPECT_GT(drift.SpreadOf(64), 0.7 * drift.SpreadOf(1));
  EXPECT_NEAR(drift.HighestMeanOf(64), 1.1, 0.03);
}

TEST(Thresholds, KnowTheTailOfCleanSteps) {
  const Thresholds thresholds(StepsOf(500, [](int step) { return step % 50 == 49 ? std::log(3.0) : 0; }));
  EXPECT_FALSE(thresholds.IsInTail(2.5)) << "one in fifty is longer";
  EXPECT_TRUE(thresholds.IsInTail(3.4));
  EXPECT_NEAR(thresholds.ShareAbove(2), 0.02, 0.001);
  EXPECT_EQ(thresholds.ShareAbove(4), 0);
  EXPECT_NEAR(thresholds.longest_ratio(), 3 / 1.04, 0.01) << "of the mean";
  EXPECT_TRUE(Thresholds(StepsOf(500, [](int) { return 0; })).IsInTail(1.11)) << "at least a tenth longer";
}

TEST(Thresholds, AreOutdatedWhenASixteenthOfTheStepsIsNew) {
  CleanSteps clean = RandomSteps(803, 0.05);
  const Thresholds thresholds(clean);
  int added = 0;
  for (; !thresholds.AreOutdated(clean); ++added)
    clean.Learn({.type = {1, 1}, .start_ns = 0, .end_ns = 20 * kMs});
  EXPECT_EQ(added, 53) << "of 853 that there are then";
}

}  // namespace
}  // namespace gpusonde::diagnose
