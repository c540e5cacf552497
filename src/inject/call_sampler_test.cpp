// SPDX-License-Identifier: Apache-2.0
#include "inject/call_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gpusonde::inject {
namespace {

constexpr double kUnit = CallSampler::kCertain;
constexpr int kBudget = CallSampler::kPerSecond;

CallSampler Seeded(uint64_t seed) {
  CallSampler sampler;
  // Scrambled like the kernel's random bits: the streams of a congruential generator with neighbouring seeds
  // are correlated.
  sampler.Seed(std::mt19937_64(seed)() | 1, 1);
  return sampler;
}

TEST(CallSampler, SamplesEveryCallOfASlowThread) {
  CallSampler sampler = Seeded(1);
  for (uint32_t second = 1; second < 20; ++second)
    for (int call = 0; call < kBudget; ++call) ASSERT_TRUE(sampler.Sample(second));
}

TEST(CallSampler, StaysWithinItsBudgetOnceItKnowsTheRate) {
  for (const uint32_t rate : {1'000U, 10'000U, 100'000U}) {
    CallSampler sampler = Seeded(rate);
    int chosen = 0;
    constexpr int kSeconds = 50;
    for (uint32_t second = 1; second <= kSeconds + 1; ++second)
      for (uint32_t call = 0; call < rate; ++call)
        if (sampler.Sample(second) && second > 1) ++chosen;
    // The number of samples is binomial; its standard deviation is at most the root of its mean.
    EXPECT_NEAR(chosen, kBudget * kSeconds, 5 * std::sqrt(kBudget * kSeconds)) << rate;
  }
}

TEST(CallSampler, LowersTheProbabilityInASecondThatIsBusierThanTheLast) {
  CallSampler sampler = Seeded(3);
  int chosen = 0;
  for (int call = 0; call < 100'000; ++call) chosen += sampler.Sample(1) ? 1 : 0;
  // The first 128 calls with certainty, then about 64 in each of the log2(100,000 / 128) = 9.6 doublings.
  EXPECT_NEAR(chosen, 128 + 64 * 9.6, 5 * std::sqrt(64 * 9.6));
}

TEST(CallSampler, KeepsItsProbabilityWithinASecondOfTheSameRate) {
  CallSampler sampler = Seeded(4);
  for (int call = 0; call < 4000; ++call) sampler.Sample(1);
  for (int call = 1; call < 8000; ++call)
    if (sampler.Sample(2)) {
      ASSERT_NEAR(sampler.probability() / kUnit, 1.0 * kBudget / 4000, 1e-6) << call;
    }
}

// A stream that repeats every 7 calls, at a rate that changes from second to second: for each of the 7
// positions, the sum of 1/p over the sampled calls estimates the number of calls without bias.
TEST(CallSampler, EstimatesEachPartOfAPeriodicStreamWithoutBias) {
  constexpr int kParts = 7;
  constexpr int kRuns = 400;
  std::vector<double> estimate(kParts);
  std::vector<double> square(kParts);
  double calls_each = 0;
  for (int run = 0; run < kRuns; ++run) {
    CallSampler sampler = Seeded(static_cast<uint64_t>(run) + 1000);
    std::vector<double> sums(kParts);
    int position = 0;
    for (uint32_t second = 1; second <= 5; ++second)
      for (uint32_t call = 0; call < 1000 * second; ++call, ++position)
        if (sampler.Sample(second))
          sums[static_cast<size_t>(position % kParts)] += kUnit / sampler.probability();
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

// 9,000 launches of a short kernel a second, 900 of a hundred others, and 20 of one that takes most of the
// time.
struct Mix {
  static constexpr uint32_t kLong = 200;
  static constexpr uint32_t kCalls = 9920;

  static uint32_t ClassOf(uint32_t call) {
    if (call % 496 == 0) return kLong;
    return call % 11 == 0 ? 1 + call / 11 % 100 : 0;
  }
};

TEST(CallSampler, SamplesEveryCallOfARareKernelThatTakesMostOfTheTime) {
  CallSampler sampler = Seeded(7);
  CallSampler::Times times = {};
  times[0] = 45'000;
  times[Mix::kLong] = 400'000;
  int chosen = 0;
  for (uint32_t second = 1; second <= 10; ++second)
    for (uint32_t call = 0; call < Mix::kCalls; ++call) {
      const uint32_t of = Mix::ClassOf(call);
      const bool now = sampler.Sample(second, of, &times);
      if (second == 1) continue;
      chosen += now ? 1 : 0;
      if (of == Mix::kLong) {
        ASSERT_TRUE(now) << second;
      }
    }
  // The long kernel's share of the budget exceeds its number of calls; the rest of that share is not spent.
  EXPECT_LT(chosen, 9 * kBudget + 5 * std::sqrt(9 * kBudget));
  EXPECT_GT(chosen, 9 * kBudget * 7 / 10);
}

TEST(CallSampler, EstimatesEveryClassWithoutBiasWhateverTheTimes) {
  std::vector<double> calls(256);
  std::vector<double> estimate(256);
  std::vector<double> variance(256);
  for (uint64_t run = 0; run < 300; ++run) {
    CallSampler sampler = Seeded(run + 5000);
    CallSampler::Times times = {};
    for (uint32_t second = 1; second <= 4; ++second) {
      for (size_t of = 0; of < times.size(); ++of)
        times[of] = static_cast<uint32_t>((of * 7 + size_t{second} * 13) % 97 * 100);
      for (uint32_t call = 0; call < Mix::kCalls; ++call) {
        const uint32_t of = Mix::ClassOf(call);
        ++calls[of];
        if (!sampler.Sample(second, of, &times)) continue;
        const double p = sampler.probability() / kUnit;
        estimate[of] += 1 / p;
        variance[of] += (1 - p) / (p * p);
      }
    }
  }
  for (size_t of = 0; of < calls.size(); ++of)
    EXPECT_NEAR(estimate[of], calls[of], 5 * std::sqrt(variance[of]) + 1e-6) << of;
}

TEST(CallSampler, ManyNewKernelsAtOnceAreNotAllSampled) {
  CallSampler sampler = Seeded(8);
  int chosen = 0;
  for (uint32_t call = 0; call < 20'000; ++call) chosen += sampler.Sample(1, call % 256) ? 1 : 0;
  // The first 8 calls of each class with certainty, then about 4 in each of the log2(78 / 8) = 3.3 doublings.
  EXPECT_NEAR(chosen, 256 * (8 + 4 * 3.3), 5 * std::sqrt(256 * 4 * 3.3));
}

TEST(CallSampler, SamplesAreIndependent) {
  CallSampler sampler = Seeded(6);
  for (int call = 0; call < 4 * kBudget; ++call) sampler.Sample(1);
  int both = 0;
  int chosen = 0;
  bool last = false;
  constexpr int kCalls = 200'000;
  // The rate is constant, so the probability is too.
  for (int round = 0; round < kCalls / (4 * kBudget); ++round) {
    for (int call = 0; call < 4 * kBudget; ++call) {
      const bool now = sampler.Sample(2 + static_cast<uint32_t>(round));
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
