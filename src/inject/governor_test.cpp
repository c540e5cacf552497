// SPDX-License-Identifier: Apache-2.0
#include "inject/governor.h"

#include <gtest/gtest.h>

namespace gpusonde::inject {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr double kDefault = Governor::kDefaultBudget;
constexpr CostEstimate::Interval kUnknown{};

// A window of 2 s with few records.
Governor::Window Quiet(uint64_t measured_ns) {
  return {.awake_ns = 2000 * kMs, .measured_ns = measured_ns, .records = 100, .since_wake_ns = 2000 * kMs};
}
// One of a program that CUPTI might cost more than the budget: 1 % at worst, taken to be 0.4 %.
Governor::Window Busy(uint64_t measured_ns) {
  Governor::Window window = Quiet(measured_ns);
  window.records = 4'000;
  return window;
}

TEST(Governor, DoesNotSleepAfterAWindowWithinTheBudget) {
  Governor governor;
  EXPECT_EQ(governor.Decide(Quiet(0), kUnknown, kDefault).sleep_ns, 0U);
  EXPECT_EQ(governor.Decide(Quiet(8 * kMs), kUnknown, kDefault).sleep_ns, 0U);  // 0.4 %
}

TEST(Governor, SleepsUntilWindowAndSleepAreWithinTheBudget) {
  // 2 % for 2 s: 8 s in all make it 0.5 %.
  EXPECT_EQ(Governor().Decide(Quiet(40 * kMs), kUnknown, kDefault).sleep_ns, 6000 * kMs);
  EXPECT_EQ(Governor().Decide(Quiet(40 * kMs), kUnknown, 0.021).sleep_ns, 0U);
  EXPECT_EQ(Governor().Decide(Quiet(40 * kMs), kUnknown, 0.001).sleep_ns, 38'000 * kMs);
}

TEST(Governor, CountsWhatThePaceShowsIfThatIsMore) {
  const CostEstimate::Interval four_percent{.pairs = 10, .cost = 0.04, .low = 0.03, .high = 0.05};
  EXPECT_EQ(Governor().Decide(Quiet(2 * kMs), four_percent, kDefault).sleep_ns, 14'000 * kMs);
  // 10 % by what is measured.
  EXPECT_EQ(Governor().Decide(Quiet(200 * kMs), four_percent, kDefault).sleep_ns, 38'000 * kMs);
  // It may cost nothing.
  const CostEstimate::Interval noise{.pairs = 10, .cost = 0.04, .low = -0.01, .high = 0.09};
  EXPECT_EQ(Governor().Decide(Quiet(2 * kMs), noise, kDefault).sleep_ns, 0U);
}

TEST(Governor, AssumesACostOfEachRecordUntilThePaceShowsIt) {
  Governor::Window window = Quiet(0);
  window.records = 100'000;  // 50,000 a second: 0.2 s of 2 s
  window.marks = 10;
  const Governor::Decision decision = Governor().Decide(window, kUnknown, kDefault);
  EXPECT_EQ(decision.sleep_ns, 38'000 * kMs);
  EXPECT_EQ(decision.next_window_ns, Governor::kUnknownWindowNs);
  const CostEstimate::Interval nothing{.pairs = 6, .cost = 0.001, .low = -0.001, .high = 0.003};
  EXPECT_EQ(Governor().Decide(window, nothing, kDefault).sleep_ns, 0U) << "its GPU is the limit";
}

// As long as it takes to compare steps: what it costs may be more than is assumed.
TEST(Governor, KeepsWindowsShortUntilTheCostIsKnown) {
  Governor::Window window = Quiet(0);
  window.records = 100'000;
  const auto next_window_ns = [&](uint32_t marks) {
    window.marks = marks;
    return Governor().Decide(window, kUnknown, kDefault).next_window_ns;
  };
  EXPECT_EQ(next_window_ns(2000), Governor::kMinWindowNs);
  EXPECT_EQ(next_window_ns(160), 800 * kMs);
  EXPECT_EQ(next_window_ns(10), Governor::kUnknownWindowNs);
  EXPECT_EQ(next_window_ns(0), Governor::kWindowNs) << "so that marks are found";
}

TEST(Governor, CountsWakingWhereItSleeps) {
  Governor::Window window = Quiet(40 * kMs);
  window.transition_ns = 10 * kMs;
  EXPECT_EQ(Governor().Decide(window, kUnknown, kDefault).sleep_ns, 8000 * kMs);
  // Another sleep would only make it wake once more.
  window.measured_ns = 0;
  EXPECT_EQ(Governor().Decide(window, kUnknown, kDefault).sleep_ns, 0U);
}

// Six windows of 2 s at 5 %, of which nothing was known: 0.6 s, which two minutes at 0.5 % pay.
TEST(Governor, PaysForWindowsWhoseCostShowsLater) {
  Governor governor;
  for (int i = 0; i < 6; ++i) governor.Decide(Busy(0), kUnknown, kDefault);
  const CostEstimate::Interval five_percent{.pairs = 6, .cost = 0.05, .low = 0.04, .high = 0.06};
  double asleep_ns = 6 * static_cast<double>(Governor::kTrialNs);
  Governor::Window window = Quiet(0);
  window.marks = 100;
  const Governor::Decision decision = governor.Decide(window, five_percent, kDefault);
  EXPECT_EQ(decision.sleep_ns, Governor::kMaxSleepNs);
  EXPECT_EQ(decision.next_window_ns, Governor::kUnknownWindowNs) << "not all is paid";
  EXPECT_GT(governor.use().spent, kDefault);
  asleep_ns += static_cast<double>(Governor::kMaxSleepNs);
  for (int i = 0; i < 19; ++i)
    asleep_ns += static_cast<double>(governor.Decide(Quiet(0), five_percent, kDefault).sleep_ns);
  const double awake_ns = 26 * 2000.0 * kMs;
  EXPECT_LE(0.05 * awake_ns / (awake_ns + asleep_ns), kDefault);
  EXPECT_GE(0.05 * awake_ns / (awake_ns + asleep_ns), 0.95 * kDefault);
  EXPECT_EQ(governor.Decide(Quiet(0), five_percent, kDefault).sleep_ns, 18'000 * kMs) << "paid";
}

TEST(Governor, KeepsTheBudgetAtAnyCost) {
  for (const double budget : {0.0005, 0.005, 0.05})
    for (const double cost : {0.001, 0.01, 0.1, 1.0}) {
      Governor governor;
      double awake_ns = 0, all_ns = 0;
      uint64_t length_ns = Governor::kWindowNs;
      for (int i = 0; i < 50; ++i) {
        const auto measured_ns = static_cast<uint64_t>(cost * static_cast<double>(length_ns));
        const Governor::Decision decision = governor.Decide(
            {.awake_ns = length_ns, .measured_ns = measured_ns, .records = 1, .since_wake_ns = length_ns},
            kUnknown, budget);
        awake_ns += static_cast<double>(length_ns);
        all_ns += static_cast<double>(length_ns + decision.sleep_ns);
        length_ns = decision.next_window_ns;
      }
      EXPECT_LE(awake_ns / all_ns * cost, budget * 1.001) << budget << " " << cost;
      EXPECT_LE(governor.use().spent, budget * 1.001);
      EXPECT_NEAR(governor.use().measured, cost, cost / 100);
    }
}

// There is a window every minute, though a shorter one, unless even that is too much.
TEST(Governor, ShortensWindowsRatherThanSleepLongerThanAMinute) {
  const uint64_t length_ns = Governor::WindowFor(0.3, kDefault);
  EXPECT_LT(length_ns, Governor::kWindowNs);
  EXPECT_NEAR(
      static_cast<double>(Governor::SleepAfter(length_ns, 0.3 * static_cast<double>(length_ns), kDefault)),
      static_cast<double>(Governor::kMaxSleepNs), 1e6);
  EXPECT_EQ(Governor::WindowFor(1, 0.0005), Governor::kMinWindowNs);
  EXPECT_EQ(Governor::WindowFor(0.001, kDefault), Governor::kWindowNs);
}

TEST(Governor, MeasuresTheOverheadByTrialsWhereItMayBeLarge) {
  Governor governor;
  EXPECT_EQ(governor.Decide(Busy(0), kUnknown, kDefault).sleep_ns, Governor::kTrialNs);
  const CostEstimate::Interval cheap{.pairs = 6, .cost = 0.001, .low = -0.001, .high = 0.003};
  EXPECT_EQ(governor.Decide(Busy(0), cheap, kDefault).sleep_ns, 0U) << "settled";
  Governor::Window window = Busy(0);
  window.since_wake_ns = Governor::kTrialSettledNs;
  EXPECT_EQ(governor.Decide(window, cheap, kDefault).sleep_ns, Governor::kTrialNs) << "a minute later";
}

TEST(Governor, TriesLessOftenOnceSomethingIsKnown) {
  const CostEstimate::Interval wide{.pairs = 6, .cost = 0.001, .low = -0.02, .high = 0.02};
  Governor governor;
  EXPECT_EQ(governor.Decide(Busy(0), wide, kDefault).sleep_ns, 0U);
  Governor::Window window = Busy(0);
  window.since_wake_ns = Governor::kTrialUnsettledNs;
  EXPECT_EQ(governor.Decide(window, wide, kDefault).sleep_ns, Governor::kTrialNs);
}

TEST(Governor, TriesOnceAMinuteIfManyTrialsDontSettleIt) {
  for (const bool known : {false, true}) {
    const CostEstimate::Interval wide{.pairs = known ? 30U : 0U, .cost = 0.001, .low = -0.02, .high = 0.02};
    Governor governor;
    uint32_t trials = 0;
    for (Governor::Window window = Busy(0); window.since_wake_ns < Governor::kTrialSettledNs;) {
      if (governor.Decide(window, wide, kDefault).sleep_ns == 0) {
        window.since_wake_ns += window.awake_ns;
      } else {
        window = Busy(0);
        ++trials;
      }
    }
    EXPECT_EQ(trials, Governor::kTrials) << known;
  }
}

TEST(Governor, TriesLessOftenAndForLongerWhereWakingIsSlow) {
  Governor governor;
  Governor::Window window = Busy(0);
  window.transition_ns = 4 * kMs;
  EXPECT_EQ(governor.Decide(window, kUnknown, kDefault).sleep_ns, 4000 * kMs);
  window.transition_ns = 2000 * kMs;
  EXPECT_EQ(governor.Decide(window, kUnknown, kDefault).sleep_ns, 0U);
  window.since_wake_ns = 801'000 * kMs;
  EXPECT_EQ(governor.Decide(window, kUnknown, kDefault).sleep_ns, Governor::kLongestTrialNs);
}

}  // namespace
}  // namespace gpusonde::inject
