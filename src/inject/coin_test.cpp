// SPDX-License-Identifier: Apache-2.0
#include "inject/coin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpusonde::inject {
namespace {

constexpr double kUnit = Coin::kCertain;

Coin Seeded(uint64_t seed) {
  Coin coin;
  coin.Seed(seed * 0x9e3779b97f4a7c15 | 1, 1);
  return coin;
}

TEST(Coin, ChoosesEveryCallOfASlowThread) {
  Coin coin = Seeded(1);
  for (uint32_t second = 1; second < 20; ++second)
    for (int call = 0; call < 250; ++call) ASSERT_TRUE(coin.Flip(second));
}

TEST(Coin, ChoosesAbout250ASecondOnceItKnowsTheRate) {
  for (const uint32_t rate : {1'000U, 10'000U, 100'000U}) {
    Coin coin = Seeded(rate);
    int chosen = 0;
    constexpr int kSeconds = 50;
    for (uint32_t second = 1; second <= kSeconds + 1; ++second)
      for (uint32_t call = 0; call < rate; ++call)
        if (coin.Flip(second) && second > 1) ++chosen;
    // Binomial: sd of the sum is at most sqrt(250 * 50) = 112.
    EXPECT_NEAR(chosen, 250 * kSeconds, 5 * 112) << rate;
  }
}

TEST(Coin, HoldsBackInASecondThatIsBusierThanTheLast) {
  Coin coin = Seeded(3);
  int chosen = 0;
  for (int call = 0; call < 100'000; ++call) chosen += coin.Flip(1) ? 1 : 0;
  // 500 with certainty, then about 250 for each of the log2(100,000 / 500) = 7.6 doublings.
  EXPECT_NEAR(chosen, 500 + 250 * 7.6, 5 * std::sqrt(250 * 7.6));
}

TEST(Coin, KeepsItsProbabilityWithinASecondOfTheSameRate) {
  Coin coin = Seeded(4);
  for (int call = 0; call < 4000; ++call) coin.Flip(1);
  coin.Flip(2);
  const uint32_t probability = coin.probability();
  EXPECT_NEAR(probability / kUnit, 250.0 / 4000, 1e-6);
  for (int call = 1; call < 8000; ++call) {
    coin.Flip(2);
    ASSERT_EQ(coin.probability(), probability);
  }
}

// A stream that repeats every 7 calls, its parts of very different lengths, at a rate that changes from
// second to second: the sum of 1/p over the chosen calls of each part estimates its number of calls without
// bias.
TEST(Coin, EstimatesEachPartOfAPeriodicStreamWithoutBias) {
  constexpr int kParts = 7;
  constexpr int kRuns = 400;
  std::vector<double> estimate(kParts);
  std::vector<double> square(kParts);
  double calls_each = 0;
  for (int run = 0; run < kRuns; ++run) {
    Coin coin = Seeded(static_cast<uint64_t>(run) + 1000);
    std::vector<double> sums(kParts);
    int position = 0;
    for (uint32_t second = 1; second <= 5; ++second)
      for (uint32_t call = 0; call < 1000 * second; ++call, ++position)
        if (coin.Flip(second)) sums[static_cast<size_t>(position % kParts)] += kUnit / coin.probability();
    calls_each = position / static_cast<double>(kParts);
    for (size_t part = 0; part < kParts; ++part) {
      estimate[part] += sums[part] / kRuns;
      square[part] += sums[part] * sums[part] / kRuns;
    }
  }
  for (size_t part = 0; part < kParts; ++part) {
    const double sd_of_mean = std::sqrt((square[part] - estimate[part] * estimate[part]) / kRuns);
    EXPECT_NEAR(estimate[part], calls_each, 5 * sd_of_mean) << part;
    EXPECT_LT(sd_of_mean, calls_each / 50);
  }
}

TEST(Coin, ChoicesDoNotDependOnTheOnesBefore) {
  Coin coin = Seeded(6);
  for (int call = 0; call < 1000; ++call) coin.Flip(1);  // then 1/4
  int both = 0;
  int chosen = 0;
  bool last = false;
  constexpr int kCalls = 200'000;
  // One call in 1,000 seconds each would change the rate: stay in the second, below twice its rate, by fresh
  // coins.
  for (int round = 0; round < kCalls / 1000; ++round) {
    for (int call = 0; call < 1000; ++call) {
      const bool now = coin.Flip(2 + static_cast<uint32_t>(round));
      chosen += now ? 1 : 0;
      both += now && last ? 1 : 0;
      last = now;
    }
  }
  EXPECT_NEAR(chosen, kCalls / 4.0, 5 * std::sqrt(kCalls * 0.25 * 0.75));
  EXPECT_NEAR(both, kCalls / 16.0, 5 * std::sqrt(kCalls / 16.0 * 15 / 16));
}

}  // namespace
}  // namespace gpusonde::inject
