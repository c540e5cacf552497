// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

#include "inject/cost_estimate.h"

namespace gpusonde::inject {

// Decides how long to sleep after an awake window, so that profiling costs the program no more than a budget.
// The cost of a window is the larger of two: what can be measured inside the process (the time of our
// callbacks on the host's threads, the CPU time of our own thread, and the overhead that CUPTI reports about
// itself), and what the program's pace awake and asleep shows (CostEstimate), which includes what CUPTI adds
// to a launch without reporting it; until that is known, kAssumedPerRecordNs for each record. Where the
// window is beyond the budget, so that a sleep follows, the time of CUPTI's calls for falling asleep and
// waking is added, in which it may have stopped the program.
//
// The second needs sleeps. Where a window is within the budget by what is measured, and CUPTI could cost so
// much that it is not, the library falls asleep for a moment all the same, a trial: after each window until
// something is known, every kTrialUnsettledNs until that is settled, and then once a minute. What the windows
// have cost that were awake before the pace showed it, is a debt that longer sleeps, and shorter windows
// between them, pay. Not thread-safe.
class Governor {
 public:
  // Step time may rise by at most 0.5 % if no consumer says otherwise: the goal for profiling that is always
  // on.
  static constexpr double kDefaultBudget = 0.005;
  // Length of an awake window: several flushes (250 ms) long, yet short enough for interactive use. Shorter
  // where the sleep after it would be longer than kMaxSleepNs.
  static constexpr uint64_t kWindowNs = uint64_t{2'000'000'000};
  static constexpr uint64_t kMinWindowNs = uint64_t{500'000'000};
  // Even at a high cost there is a window every minute; only where the shortest window exceeds the budget of
  // a minute, sleeps are longer.
  static constexpr uint64_t kMaxSleepNs = uint64_t{60'000'000'000};
  static constexpr uint64_t kLongestSleepNs = uint64_t{5'000'000'000'000};

  // A sleep for the estimate's sake, longer where waking takes long, so that this hardly counts in it.
  static constexpr uint64_t kTrialNs = uint64_t{1'000'000'000};
  static constexpr uint64_t kLongestTrialNs = uint64_t{10'000'000'000};
  static constexpr uint64_t kTrialPerWake = 1000;
  // Trials leave gaps in what is known of the program: so many may follow each other closely, and so many be
  // spent on an interval that stays wider than the budget.
  static constexpr uint32_t kFirstTrials = 2 * CostEstimate::kMinPairs;
  static constexpr uint32_t kTrials = 40;
  static constexpr uint64_t kTrialUnsettledNs = uint64_t{8'000'000'000};
  static constexpr uint64_t kTrialSettledNs = uint64_t{60'000'000'000};
  // What CUPTI may cost for each record besides what it reports; about what a launch itself takes.
  static constexpr uint64_t kWorstPerRecordNs = 5'000;
  // What it is taken to cost until the pace shows it: 1.7 to 1.9 us a launch on an H200
  // (docs/gpu-results.md).
  static constexpr uint64_t kAssumedPerRecordNs = 2'000;
  // Length of the windows until then, where the assumption exceeds the budget: what they really cost may be a
  // multiple of that. Shorter, also between trials, where so many marks of steps (StepMarks) come sooner, as
  // more make a comparison hardly better; a whole window where there are none yet. Likewise of the windows
  // while a sleep leaves a debt.
  static constexpr uint64_t kUnknownWindowNs = uint64_t{1'000'000'000};
  static constexpr uint32_t kMarksToCompare = 64;

  struct Window {
    uint64_t awake_ns = 0;
    uint64_t measured_ns = 0;    // inside the process
    uint64_t transition_ns = 0;  // for the last sleep: falling asleep and waking
    uint64_t records = 0;
    uint32_t marks = 0;          // of steps; 0: none are known
    uint64_t since_wake_ns = 0;  // awake without a pause, this window included
  };
  struct Decision {
    uint64_t sleep_ns = 0;  // 0: stay awake
    uint64_t next_window_ns = kWindowNs;
  };

  // What the budget was used for lately; shares of the program's time.
  struct Use {
    double spent = 0;
    double measured = 0;  // cost while awake
  };

  Decision Decide(const Window& window, const CostEstimate::Interval& estimate, double budget) {
    const auto awake = static_cast<double>(window.awake_ns);
    const double measured = static_cast<double>(window.measured_ns);
    const double assumed = estimate.known() ? 0 : static_cast<double>(window.records * kAssumedPerRecordNs);
    const double by_pace = estimate.significant() ? estimate.cost * awake : assumed;
    const double running = measured > by_pace ? measured : by_pace;
    const auto transition = static_cast<double>(window.transition_ns);
    const double late = LatePrice(awake, running, estimate);
    Decision decision{.next_window_ns = WindowFor(awake == 0 ? 0 : running / awake, budget)};
    const bool exceeds = running > budget * awake;
    if (exceeds) {
      decision.sleep_ns =
          WithDebt(SleepAfter(window.awake_ns, running + transition, budget),
                   SleepAfter(window.awake_ns, running + transition + late + debt_ns_, budget));
    } else if (TrialIsDue(window, estimate, budget)) {
      decision.sleep_ns = TrialNs(window.transition_ns);
      ++trials_;
    }
    const bool is_first = window.since_wake_ns <= window.awake_ns;
    Account(awake, static_cast<double>(decision.sleep_ns), measured,
            running + late + (is_first ? transition : 0), budget);
    const bool owes = decision.sleep_ns != 0 && debt_ns_ > budget * static_cast<double>(kMinWindowNs);
    if ((decision.sleep_ns != 0 && !estimate.known()) || owes)
      decision.next_window_ns =
          Shorter(decision.next_window_ns, ToCompare(window, exceeds ? kUnknownWindowNs : kWindowNs));
    return decision;
  }

  Use use() const {
    return {.spent = time_ns_ == 0 ? 0 : spent_ns_ / time_ns_,
            .measured = awake_ns_ == 0 ? 0 : measured_ns_ / awake_ns_};
  }

  // How long to sleep after an awake window of `awake_ns` that cost `cost_ns`: 0 if the window was within the
  // budget, else the time that brings window and sleep together back to the budget.
  static uint64_t SleepAfter(uint64_t awake_ns, double cost_ns, double budget) {
    const double sleep_ns = cost_ns / budget - static_cast<double>(awake_ns);
    if (sleep_ns < 1) return 0;
    return sleep_ns < static_cast<double>(kLongestSleepNs) ? static_cast<uint64_t>(sleep_ns)
                                                           : kLongestSleepNs;
  }

  // How long to stay awake at this cost, so that the sleep after it takes at most kMaxSleepNs.
  static uint64_t WindowFor(double cost, double budget) {
    if (cost <= budget) return kWindowNs;
    const double length_ns = static_cast<double>(kMaxSleepNs) / (cost / budget - 1);
    if (length_ns >= static_cast<double>(kWindowNs)) return kWindowNs;
    return length_ns > static_cast<double>(kMinWindowNs) ? static_cast<uint64_t>(length_ns) : kMinWindowNs;
  }

 private:
  // Earlier windows count less: half after five.
  static constexpr double kKept = 0.87;

  static uint64_t Shorter(uint64_t one_ns, uint64_t other_ns) {
    return one_ns < other_ns ? one_ns : other_ns;
  }

  // How long a window has to be so that steps in it can be compared.
  static uint64_t ToCompare(const Window& window, uint64_t longest_ns) {
    if (window.marks == 0) return kWindowNs;
    const uint64_t length_ns = window.awake_ns / window.marks * kMarksToCompare;
    return length_ns < kMinWindowNs ? kMinWindowNs : Shorter(length_ns, longest_ns);
  }

  static uint64_t TrialNs(uint64_t transition_ns) {
    const uint64_t length_ns = transition_ns * kTrialPerWake;
    if (length_ns <= kTrialNs) return kTrialNs;
    return length_ns < kLongestTrialNs ? length_ns : kLongestTrialNs;
  }

  bool TrialIsDue(const Window& window, const CostEstimate::Interval& estimate, double budget) const {
    const double allowed_ns = budget * static_cast<double>(window.awake_ns);
    if (static_cast<double>(window.records * kWorstPerRecordNs + window.measured_ns) <= allowed_ns)
      return false;
    // Half of what the budget allows since the last sleep, so that trials alone don't use it up.
    if (static_cast<double>(2 * window.transition_ns) > budget * static_cast<double>(window.since_wake_ns))
      return false;
    return window.since_wake_ns >= TrialEveryNs(estimate, budget);
  }

  uint64_t TrialEveryNs(const CostEstimate::Interval& estimate, double budget) const {
    if (!estimate.known() && trials_ < kFirstTrials) return 0;
    const bool settled = estimate.known() && estimate.high <= budget;
    return settled || trials_ >= kTrials ? kTrialSettledNs : kTrialUnsettledNs;
  }

  // What the windows before this one have cost beyond what was counted of them, once the pace shows that.
  double LatePrice(double awake_ns, double counted_ns, const CostEstimate::Interval& estimate) {
    double late_ns = 0;
    if (estimate.significant()) {
      late_ns = estimate.cost * unpriced_ns_ - unpriced_counted_ns_;
      unpriced_ns_ = unpriced_counted_ns_ = 0;
    } else if (unpriced_ns_ < kLongestUnpricedNs) {
      unpriced_ns_ += awake_ns;
      unpriced_counted_ns_ += counted_ns;
    }
    return late_ns > 0 ? late_ns : 0;
  }

  // The sleep that pays a debt too, or a part of it: up to kMaxSleepNs, or half of that longer than without.
  static uint64_t WithDebt(uint64_t without_ns, uint64_t with_ns) {
    const uint64_t longer_ns = without_ns + kMaxSleepNs / 2;
    const uint64_t limit_ns = longer_ns > kMaxSleepNs ? longer_ns : kMaxSleepNs;
    return with_ns < limit_ns ? with_ns : limit_ns;
  }

  void Account(double awake_ns, double sleep_ns, double measured_ns, double cost_ns, double budget) {
    debt_ns_ += cost_ns - budget * (awake_ns + sleep_ns);
    if (debt_ns_ < 0) debt_ns_ = 0;
    for (double* sum : {&time_ns_, &awake_ns_, &measured_ns_, &spent_ns_}) *sum *= kKept;
    time_ns_ += awake_ns + sleep_ns;
    awake_ns_ += awake_ns;
    measured_ns_ += measured_ns;
    spent_ns_ += cost_ns;
  }

  // The cost of a window from longer ago may have been another.
  static constexpr double kLongestUnpricedNs = 60e9;

  uint32_t trials_ = 0;
  double debt_ns_ = 0;      // spent beyond the budget
  double unpriced_ns_ = 0;  // awake before the pace showed a cost
  double unpriced_counted_ns_ = 0;
  double time_ns_ = 0;
  double awake_ns_ = 0;
  double measured_ns_ = 0;
  double spent_ns_ = 0;
};

}  // namespace gpusonde::inject
