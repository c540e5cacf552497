// SPDX-License-Identifier: Apache-2.0
#include "model/device_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/time.h"

namespace gpusonde::model {
namespace {

using testing::DoubleNear;

using Holder = DeviceAccount::Holder;
using Times = std::vector<TimeRange>;

constexpr int64_t kMinute = 60 * kNanosPerSecond;

int64_t Sum(const Times& times) {
  int64_t sum_ns = 0;
  for (const TimeRange& time : times) sum_ns += time.to_ns - time.from_ns;
  return sum_ns;
}

TEST(DeviceAccount, OfOneProcess) {
  DeviceAccount account(std::vector<Holder>{{{{100, 1100}}, {{0, 2000}}}}, {0, 2000});
  account.AddBusy(std::vector<Times>{{{200, 300}, {500, 700}}});
  const HolderUse use = account.Uses().front();
  EXPECT_EQ(use.held_ns, 1000);
  EXPECT_DOUBLE_EQ(use.busy_ns, 300);
  EXPECT_DOUBLE_EQ(use.idle_ns, 700);
  EXPECT_DOUBLE_EQ(use.unobserved_ns, 0);
}

TEST(DeviceAccount, OverlappingWorkIsSharedEqually) {
  DeviceAccount account(std::vector<Holder>{{{{0, 1000}}, {{0, 1000}}}, {{{500, 1000}}, {{0, 1000}}}},
                        {0, 1000});
  account.AddBusy(std::vector<Times>{{{400, 700}}, {{600, 800}}});
  const auto uses = account.Uses();
  EXPECT_DOUBLE_EQ(uses[0].busy_ns, 200 + 50);
  EXPECT_DOUBLE_EQ(uses[1].busy_ns, 100 + 50);
  EXPECT_DOUBLE_EQ(uses[0].idle_ns, 400 + 100) << "alone before 400, with the other after 800";
  EXPECT_DOUBLE_EQ(uses[1].idle_ns, 100);
}

TEST(DeviceAccount, WhoWorkedIsUnknownWhileAHolderIsNotObserved) {
  DeviceAccount account(std::vector<Holder>{{{{0, 1000}}, {{0, 1000}}}, {{{0, 1000}}, {{0, 600}}}},
                        {0, 1000});
  account.AddBusy(std::vector<Times>{{{500, 900}}, {}});
  const auto uses = account.Uses();
  EXPECT_DOUBLE_EQ(uses[0].busy_ns, 100);
  EXPECT_DOUBLE_EQ(uses[0].unobserved_ns, 200);
  EXPECT_DOUBLE_EQ(uses[1].unobserved_ns, 200);
  EXPECT_DOUBLE_EQ(uses[0].idle_ns + uses[1].idle_ns, 500);
}

TEST(DeviceAccount, SumsOfWindowsCountAsTheirTimes) {
  const std::vector<Holder> holders = {{{{0, 120 * kMinute}}, {{0, 120 * kMinute}}},
                                       {{{60 * kMinute, 90 * kMinute}}, {{0, 120 * kMinute}}}};
  DeviceAccount rows(holders, {0, 120 * kMinute});
  DeviceAccount sums(holders, {0, 120 * kMinute});
  for (int64_t minute = 0; minute < 120; ++minute) {
    const TimeRange window{minute * kMinute, (minute + 1) * kMinute};
    ASSERT_TRUE(sums.IsEven(window)) << minute;
    sums.AddBusySum(0, window, 20 * kNanosPerSecond);
    rows.AddBusy(std::vector<Times>{{{window.from_ns, window.from_ns + 20 * kNanosPerSecond}}, {}});
  }
  for (size_t i = 0; i < holders.size(); ++i) {
    EXPECT_DOUBLE_EQ(sums.Uses()[i].busy_ns, rows.Uses()[i].busy_ns);
    EXPECT_DOUBLE_EQ(sums.Uses()[i].idle_ns, rows.Uses()[i].idle_ns);
  }
}

TEST(DeviceAccount, AWindowInWhichAHolderComesIsNotEven) {
  const DeviceAccount account(std::vector<Holder>{{{{0, 600}}, {{0, 500}}}, {{{250, 600}}, {{0, 600}}}},
                              {0, 600});
  EXPECT_TRUE(account.IsEven({210, 220}));
  EXPECT_FALSE(account.IsEven({240, 260})) << "the second comes";
  EXPECT_FALSE(account.IsEven({510, 520})) << "the first is not observed";
  EXPECT_FALSE(account.IsEven({590, 610})) << "nobody holds the device";
}

// Any processes and any work, second by second.
TEST(DeviceAccount, PartsSumToTheWholeWhateverOverlaps) {
  std::mt19937 random(20261125);
  constexpr int64_t kEnd = 400;
  const auto any_times = [&](double on) {
    Times times;
    int64_t at = std::uniform_int_distribution<int64_t>(0, 40)(random);
    while (at < kEnd) {
      const int64_t length = std::uniform_int_distribution<int64_t>(1, 60)(random);
      if (std::uniform_real_distribution<>(0, 1)(random) < on)
        AppendToUnion({at, std::min(at + length, kEnd)}, times);
      at += length;
    }
    return times;
  };
  for (int trial = 0; trial < 300; ++trial) {
    const size_t count = std::uniform_int_distribution<size_t>(1, 5)(random);
    std::vector<Holder> holders(count);
    std::vector<Times> busy(count);
    for (size_t i = 0; i < count; ++i) {
      holders[i] = {any_times(0.8), any_times(0.9)};
      busy[i] = any_times(0.5);
    }
    DeviceAccount account(holders, {0, kEnd});
    for (int64_t from = 0; from < kEnd; from += 100) {  // in slices, as queries read them
      std::vector<Times> slice;
      for (const Times& times : busy) slice.push_back(Intersect(times, Times{{from, from + 100}}));
      account.AddBusy(slice);
    }
    const auto uses = account.Uses();

    const auto covers = [](const Times& times, int64_t at) {
      return std::ranges::any_of(times, [&](const TimeRange& t) { return t.from_ns <= at && at < t.to_ns; });
    };
    std::vector<HolderUse> expected(count);
    for (int64_t at = 0; at < kEnd; ++at) {
      double held = 0, running = 0;
      bool observed = true;
      for (size_t i = 0; i < count; ++i) {
        held += covers(holders[i].held, at);
        running += covers(busy[i], at);
        observed = observed && (!covers(holders[i].held, at) || covers(holders[i].observed, at));
      }
      if (held == 0) continue;
      for (size_t i = 0; i < count; ++i) {
        if (covers(holders[i].held, at)) {
          expected[i].held_ns += 1;
          if (!observed) expected[i].unobserved_ns += 1 / held;
          if (observed && running == 0) expected[i].idle_ns += 1 / held;
        }
        if (observed && running > 0 && covers(busy[i], at)) expected[i].busy_ns += 1 / running;
      }
    }
    double parts = 0;
    Times anybody;
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(uses[i].held_ns, expected[i].held_ns) << trial;
      ASSERT_THAT(uses[i].busy_ns, DoubleNear(expected[i].busy_ns, 1e-6)) << trial;
      ASSERT_THAT(uses[i].idle_ns, DoubleNear(expected[i].idle_ns, 1e-6)) << trial;
      ASSERT_THAT(uses[i].unobserved_ns, DoubleNear(expected[i].unobserved_ns, 1e-6)) << trial;
      double blocks = 0;
      for (const AccountBlock& block : uses[i].blocks) blocks += block.observed_ns;
      ASSERT_THAT(blocks, DoubleNear(uses[i].busy_ns + uses[i].idle_ns, 1e-6)) << trial;
      parts += uses[i].busy_ns + uses[i].idle_ns + uses[i].unobserved_ns;
      anybody.insert(anybody.end(), holders[i].held.begin(), holders[i].held.end());
    }
    std::ranges::sort(anybody, {}, &TimeRange::from_ns);
    ASSERT_THAT(parts, DoubleNear(static_cast<double>(Sum(UnionOf(anybody))), 1e-6)) << trial;
  }
}

TEST(DeviceAccount, AnEstimateIsExactWhereAllWasObserved) {
  HolderUse use{.busy_ns = 30, .idle_ns = 70};
  const auto exact = EstimateBusyShare(use);
  ASSERT_TRUE(exact.has_value());
  EXPECT_DOUBLE_EQ(exact->low, 0.3);
  EXPECT_DOUBLE_EQ(exact->high, 0.3);
  use.unobserved_ns = 100;  // and no blocks
  EXPECT_DOUBLE_EQ(EstimateBusyShare(use)->low, 0.15) << "none of the rest was busy";
  EXPECT_DOUBLE_EQ(EstimateBusyShare(use)->high, 0.65) << "all of it was";
  EXPECT_FALSE(EstimateBusyShare({.unobserved_ns = 100}).has_value());
}

// Of programs whose busy share varies from block to block, half of the blocks are observed.
TEST(DeviceAccount, TheIntervalHoldsTheTruthInNineteenOfTwentyRuns) {
  std::mt19937 random(7);
  int hits = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    HolderUse use;
    double busy = 0;
    std::vector<size_t> order(kAccountBlocks);
    for (size_t i = 0; i < kAccountBlocks; ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    for (size_t i = 0; i < kAccountBlocks; ++i) {
      const double share = std::uniform_real_distribution<>(0.2, 0.9)(random);
      busy += share;
      if (i % 2 == 0) {
        use.unobserved_ns += 1;
        continue;
      }
      use.blocks[order[i]] = {1, share};
      use.busy_ns += share;
      use.idle_ns += 1 - share;
    }
    const auto estimate = EstimateBusyShare(use);
    ASSERT_TRUE(estimate.has_value());
    const double truth = busy / static_cast<double>(kAccountBlocks);
    hits += estimate->low <= truth && truth <= estimate->high;
  }
  // Three standard deviations of a binomial around 95 %.
  EXPECT_NEAR(static_cast<double>(hits) / kRuns, 0.95, 0.015);
}

}  // namespace
}  // namespace gpusonde::model
