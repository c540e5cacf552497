// SPDX-License-Identifier: Apache-2.0
#include "inject/coin.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gpusonde::inject {
namespace {

constexpr double kUnit = Coin::kCertain;
constexpr int kBudget = Coin::kPerSecond;

Coin Seeded(uint64_t seed) {
  Coin coin;
  // As different as those of the kernel: sums of a congruential generator's neighbouring seeds are not
  // independent.
  coin.Seed(std::mt19937_64(seed)() | 1, 1);
  return coin;
}

TEST(Coin, ChoosesEveryCallOfASlowThread) {
  Coin coin = Seeded(1);
  for (uint32_t second = 1; second < 20; ++second)
    for (int call = 0; call < kBudget; ++call) ASSERT_TRUE(coin.Flip(second));
}

TEST(Coin, KeepsToItsBudgetOnceItKnowsTheRate) {
  for (const uint32_t rate : {1'000U, 10'000U, 100'000U}) {
    Coin coin = Seeded(rate);
    int chosen = 0;
    constexpr int kSeconds = 50;
    for (uint32_t second = 1; second <= kSeconds + 1; ++second)
      for (uint32_t call = 0; call < rate; ++call)
        if (coin.Flip(second) && second > 1) ++chosen;
    // Binomial: the sd of the sum is at most this.
    EXPECT_NEAR(chosen, kBudget * kSeconds, 5 * std::sqrt(kBudget * kSeconds)) << rate;
  }
}

TEST(Coin, HoldsBackInASecondThatIsBusierThanTheLast) {
  Coin coin = Seeded(3);
  int chosen = 0;
  for (int call = 0; call < 100'000; ++call) chosen += coin.Flip(1) ? 1 : 0;
  // 128 with certainty, then about 64 for each of the log2(100,000 / 128) = 9.6 doublings.
  EXPECT_NEAR(chosen, 128 + 64 * 9.6, 5 * std::sqrt(64 * 9.6));
}

TEST(Coin, KeepsItsProbabilityWithinASecondOfTheSameRate) {
  Coin coin = Seeded(4);
  for (int call = 0; call < 4000; ++call) coin.Flip(1);
  for (int call = 1; call < 8000; ++call)
    if (coin.Flip(2)) {
      ASSERT_NEAR(coin.probability() / kUnit, 1.0 * kBudget / 4000, 1e-6) << call;
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

// 9,000 calls of a short kernel a second, 900 of a hundred others, and 20 of one that has most of the time.
struct Mix {
  static constexpr uint32_t kLong = 200;
  static constexpr uint32_t kCalls = 9920;

  static uint32_t ClassOf(uint32_t call) {
    if (call % 496 == 0) return kLong;
    return call % 11 == 0 ? 1 + call / 11 % 100 : 0;
  }
};

TEST(Coin, ChoosesEveryCallOfASeldomKernelThatTakesMostOfTheTime) {
  Coin coin = Seeded(7);
  Coin::Times times = {};
  times[0] = 45'000;
  times[Mix::kLong] = 400'000;
  int chosen = 0;
  for (uint32_t second = 1; second <= 10; ++second)
    for (uint32_t call = 0; call < Mix::kCalls; ++call) {
      const uint32_t of = Mix::ClassOf(call);
      const bool now = coin.Flip(second, of, &times);
      if (second == 1) continue;
      chosen += now ? 1 : 0;
      if (of == Mix::kLong) {
        ASSERT_TRUE(now) << second;
      }
    }
  // The long one's share of the budget by time is more than it has calls, and what is left over is not spent.
  EXPECT_LT(chosen, 9 * kBudget + 5 * std::sqrt(9 * kBudget));
  EXPECT_GT(chosen, 9 * kBudget * 7 / 10);
}

TEST(Coin, EstimatesEveryClassWithoutBiasWhateverTheTimes) {
  std::vector<double> calls(256);
  std::vector<double> estimate(256);
  std::vector<double> variance(256);
  for (uint64_t run = 0; run < 300; ++run) {
    Coin coin = Seeded(run + 5000);
    Coin::Times times = {};
    for (uint32_t second = 1; second <= 4; ++second) {
      for (size_t of = 0; of < times.size(); ++of)
        times[of] = static_cast<uint32_t>((of * 7 + size_t{second} * 13) % 97 * 100);
      for (uint32_t call = 0; call < Mix::kCalls; ++call) {
        const uint32_t of = Mix::ClassOf(call);
        ++calls[of];
        if (!coin.Flip(second, of, &times)) continue;
        const double p = coin.probability() / kUnit;
        estimate[of] += 1 / p;
        variance[of] += (1 - p) / (p * p);
      }
    }
  }
  for (size_t of = 0; of < calls.size(); ++of)
    EXPECT_NEAR(estimate[of], calls[of], 5 * std::sqrt(variance[of]) + 1e-6) << of;
}

TEST(Coin, ManyNewKernelsAtOnceDoNotMakeItChooseAll) {
  Coin coin = Seeded(8);
  int chosen = 0;
  for (uint32_t call = 0; call < 20'000; ++call) chosen += coin.Flip(1, call % 256) ? 1 : 0;
  // 8 of each for certain, then about 4 for each of the log2(78 / 8) = 3.3 doublings.
  EXPECT_NEAR(chosen, 256 * (8 + 4 * 3.3), 5 * std::sqrt(256 * 4 * 3.3));
}

TEST(Coin, ChoicesDoNotDependOnTheOnesBefore) {
  Coin coin = Seeded(6);
  for (int call = 0; call < 4 * kBudget; ++call) coin.Flip(1);
  int both = 0;
  int chosen = 0;
  bool last = false;
  constexpr int kCalls = 200'000;
  // The rate stays, and so the probability.
  for (int round = 0; round < kCalls / (4 * kBudget); ++round) {
    for (int call = 0; call < 4 * kBudget; ++call) {
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
