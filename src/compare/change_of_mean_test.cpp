// SPDX-License-Identifier: Apache-2.0
#include "compare/change_of_mean.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <random>

namespace gpusonde::compare {
namespace {

// Of two kernels, one takes four times as long and is known well, the other varies and takes what it took.
constexpr double kSlowNs = 40'000, kOtherNs = 190'000;
const double kTrue = std::log((kSlowNs + kOtherNs) / (kSlowNs / 4 + kOtherNs));

TEST(ChangeOfMean, IsThatOfTheSumOfTimes) {
  ChangeOfMean change;
  EXPECT_TRUE(change.empty());
  change.Add(kSlowNs, std::log(4.), {.variance = 1e-8, .freedom = 10}, {.variance = 1e-8, .freedom = 10});
  change.Add(kOtherNs, 0, {.variance = 1e-4, .freedom = 10}, {.variance = 1e-4, .freedom = 10});
  EXPECT_NEAR(change.difference(), kTrue, 1e-12);
  EXPECT_DOUBLE_EQ(change.taken_ns(), 230'000);
  // Each side's relative variance: 190/230 and 190/200 of it is the other kernel.
  EXPECT_NEAR(change.Within().variance, 1e-4 * (190. * 190 / (230 * 230) + 190. * 190 / (200 * 200)), 1e-8);
  EXPECT_NEAR(change.Within().freedom, 20, 1);
}

TEST(ChangeOfMean, HasTheErrorOfTheSumOfTimes) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  constexpr double kErrorOfSlow = 0.05, kErrorOfOther = 0.02;
  constexpr int kPairs = 4000;
  double squares = 0, expected = 0;
  for (int i = 0; i < kPairs; ++i) {
    ChangeOfMean change;
    for (const auto& [taken_ns, slower, error] :
         {std::array{kSlowNs, 4., kErrorOfSlow}, std::array{kOtherNs, 1., kErrorOfOther}}) {
      const double before = error * normal(random), after = error * normal(random);
      const analyze::MeanError known{.variance = error * error, .freedom = 100};
      change.Add(taken_ns * std::exp(after), std::log(slower) + after - before, known, known);
    }
    squares += std::pow(change.difference() - kTrue, 2);
    expected += change.Within().variance;
  }
  EXPECT_NEAR(squares / expected, 1, 0.1);
}

// Two runs differ by a percent for all kernels together, but this one stands out from the others.
TEST(ChangeOfMean, OfOneRunEachHasTheIntervalOfWhatIsTested) {
  ChangeOfMean change;
  const analyze::MeanError exact{.variance = 1e-7, .freedom = 100};
  change.Add(kSlowNs, std::log(1.025), exact, exact);
  constexpr double kShift = 0.005;
  const RunsOf runs{.several = false,
                    .variation = {},
                    .typical = {},
                    .shift = kShift,
                    .of_all = {.variance = 2e-4, .freedom = 0},
                    .of_each = {.variance = 1e-6, .freedom = 20}};
  const std::optional<Ratio> ratio = change.Finish(0.01, runs);
  ASSERT_TRUE(ratio.has_value() && ratio->apart.has_value());
  EXPECT_LT(ratio->low, 1);
  EXPECT_LT(ratio->p, 1e-6);
  EXPECT_GT(ratio->apart->low, 1.015);
  EXPECT_LT(ratio->apart->high, 1.025);
  EXPECT_NEAR(ratio->apart->low * ratio->apart->high, std::exp(2 * (std::log(1.025) - kShift)), 1e-9);
}

}  // namespace
}  // namespace gpusonde::compare
