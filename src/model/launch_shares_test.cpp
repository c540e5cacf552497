// SPDX-License-Identifier: Apache-2.0
#include "model/launch_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace gpusonde::model {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A kernel's launches as they really were: from which stack, and how long.
struct Launch {
  size_t stack = 0;
  double duration_ns = 0;
  double probability = 1;
};

// The result of sampling the launches once, by stack, with the sums of all stacks last.
std::vector<LaunchSums> SampleOnce(const std::vector<Launch>& launches, size_t stacks,
                                   std::mt19937_64& random) {
  std::vector<LaunchSums> sums(stacks + 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (const auto& [stack, duration, p] : launches) {
    if (uniform(random) >= p) continue;
    const LaunchSums launch{duration / p, (1 - p) / (p * p) * duration * duration};
    sums[stack] += launch;
    sums.back() += launch;
  }
  return sums;
}

TEST(LaunchShares, IntervalsCoverTheTruthAndEstimatesAreUnbiased) {
  std::mt19937_64 random(20261121);
  std::lognormal_distribution<double> duration(10, 0.8);
  int64_t covered = 0;
  int64_t estimates = 0;
  for (int kernel = 0; kernel < 10; ++kernel) {
    // Stacks of very different sizes, a hundred samples of the rarest, each with durations of its own; the
    // probability changes as it does from second to second.
    constexpr size_t kStacks = 4;
    std::discrete_distribution<size_t> choose({50, 30, 15, 5});
    std::vector<Launch> launches(16'000);
    std::vector<double> truth(kStacks, 0);
    for (size_t i = 0; i < launches.size(); ++i) {
      const size_t stack = choose(random);
      launches[i] = {stack, duration(random) * (1 + 0.5 * static_cast<double>(stack)),
                     i < launches.size() / 2 ? 0.2 : 0.05};
      truth[stack] += launches[i].duration_ns;
    }
    const double total = std::accumulate(truth.begin(), truth.end(), 0.0);
    constexpr int kRounds = 150;
    std::vector<double> mean(kStacks, 0);
    std::vector<double> mean_variance(kStacks, 0);
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<LaunchSums> sums = SampleOnce(launches, kStacks, random);
      for (size_t stack = 0; stack < kStacks; ++stack) {
        const double estimate = total * sums[stack].time_ns / sums.back().time_ns;
        const double variance = ShareVariance(static_cast<int64_t>(total), sums[stack], sums.back());
        covered += std::abs(estimate - truth[stack]) <= static_cast<double>(IntervalNs(variance)) ? 1 : 0;
        ++estimates;
        mean[stack] += estimate / kRounds;
        mean_variance[stack] += variance / kRounds;
      }
    }
    // Five standard errors of the mean of the rounds: 1 in 2 million by chance, and the seed is fixed.
    for (size_t stack = 0; stack < kStacks; ++stack)
      EXPECT_NEAR(mean[stack], truth[stack], 5 * std::sqrt(mean_variance[stack] / kRounds))
          << "kernel " << kernel << " stack " << stack;
  }
  const double coverage = static_cast<double>(covered) / static_cast<double>(estimates);
  EXPECT_GT(coverage, 0.93);
  EXPECT_LT(coverage, 0.97) << "wider than claimed";
}

TEST(LaunchShares, AgreeWithTheFormulaTermByTerm) {
  const std::vector<Launch> sampled = {{0, 100, 0.5}, {0, 300, 0.25}, {1, 200, 0.5}, {1, 50, 1}};
  std::vector<LaunchSums> sums(3);
  for (const auto& [stack, d, p] : sampled) {
    sums[stack] += {d / p, (1 - p) / (p * p) * d * d};
    sums[2] += {d / p, (1 - p) / (p * p) * d * d};
  }
  const double share = sums[0].time_ns / sums[2].time_ns;
  std::array<double, 2> parts = {};  // of the stack, and of the others
  for (const auto& [stack, d, p] : sampled) {
    const double e = d * ((stack == 0 ? 1.0 : 0.0) - share);
    parts[stack] += (1 - p) / (p * p) * e * e;
  }
  double squares = 0;
  for (size_t stack = 0; stack < 2; ++stack)
    squares += parts[stack] * (1 + sums[stack].variance_ns2 / (sums[stack].time_ns * sums[stack].time_ns));
  const double expected = 1e12 * squares / (sums[2].time_ns * sums[2].time_ns);
  EXPECT_NEAR(ShareVariance(1'000'000, sums[0], sums[2]), expected, expected * 1e-12);
  EXPECT_NEAR(ShareVariance(1'000'000, sums[1], sums[2]), expected, expected * 1e-12)
      << "the rest is as uncertain";
  EXPECT_EQ(ShareVariance(1'000'000, sums[2], sums[2]), 0) << "the whole is counted";
}

TEST(LaunchShares, HostileSumsGiveNumbers) {
  for (const double bad : {kNan, kInfinity, -kInfinity, -1.0, 0.0, 1e308})
    for (const double worse : {kNan, kInfinity, -5.0, 1e308}) {
      const double variance = ShareVariance(std::numeric_limits<int64_t>::max(), {bad, worse}, {worse, bad});
      EXPECT_TRUE(std::isfinite(variance) && variance >= 0) << bad << " " << worse;
      EXPECT_GE(IntervalNs(variance), 0);
    }
  EXPECT_EQ(IntervalNs(1.0), 2) << "rounded up";
}

TEST(Apportion, GivesEveryUnitAwayOnce) {
  EXPECT_THAT(Apportion(10, std::vector<double>{1, 1, 1}), ElementsAre(4, 3, 3)) << "the first of equals";
  EXPECT_THAT(Apportion(10, std::vector<double>{0.1, 0.85, 0.05}), ElementsAre(1, 8, 1));
  EXPECT_THAT(Apportion(7, std::vector<double>{0, 0}), ElementsAre(7, 0));
  EXPECT_THAT(Apportion(7, std::vector<double>{kNan, -3, 2, kInfinity}), ElementsAre(0, 0, 7, 0));
  EXPECT_THAT(Apportion(-7, std::vector<double>{1, 2}), ElementsAre(0, 0));

  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> weights(1 + random() % 50);
    for (double& weight : weights) weight = std::exp(std::normal_distribution<double>(0, 20)(random));
    const auto total = static_cast<int64_t>(random() >> (1 + random() % 63));
    const std::vector<int64_t> parts = Apportion(total, weights);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), total);
    for (const int64_t part : parts) EXPECT_GE(part, 0);
  }
}

}  // namespace
}  // namespace gpusonde::model
