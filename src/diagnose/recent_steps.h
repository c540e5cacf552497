// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <ranges>

#include "diagnose/clean_steps.h"

namespace gpusonde::diagnose {

// The time that some steps took, and the time that clean steps of their types and sizes usually take; ns.
struct ComparedTime {
  double ns = 0;
  double usual_ns = 0;

  ComparedTime& operator+=(const ComparedTime& other) {
    ns += other.ns;
    usual_ns += other.usual_ns;
    return *this;
  }
  ComparedTime& operator-=(const ComparedTime& other) {
    ns -= other.ns;
    usual_ns -= other.usual_ns;
    return *this;
  }
  double slowdown() const { return usual_ns > 0 ? ns / usual_ns : 1; }
};

// A step beside what is usual. Times are ns since the epoch.
struct RecentStep {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  ComparedTime time;
  double ratio = 1;     // slowdown of `time`
  ComparedTime so_far;  // of this step and those before it

  double lost_ns() const { return (ratio - 1) * time.usual_ns; }
  // Its time if it is capped at this ratio.
  ComparedTime Capped(double max_ratio) const {
    return {.ns = ratio > max_ratio ? max_ratio * time.usual_ns : time.ns, .usual_ns = time.usual_ns};
  }
};

// The newest steps in the order of their times: those of some seconds, or a few longer ones. Not thread-safe.
class RecentSteps {
 public:
  using Range = std::ranges::subrange<std::deque<RecentStep>::const_iterator>;

  void Add(const TimedStep& step, double usual_ns);

  const std::deque<RecentStep>& all() const { return steps_; }
  const RecentStep& newest() const { return steps_.back(); }
  // The steps that began at or after a time, and those that ended within a window before the newest one's
  // end.
  Range Since(int64_t time_ns) const;
  Range Within(int64_t window_ns) const;

  // The steps since the time that maximises the sum of excess times above a ratio since then; empty if there
  // is none. Each step's ratio is capped at `max_ratio`.
  Range SinceLargestExcess(double above, double max_ratio) const;
  // The steps since the onset that maximises the sum of excess times since then; empty if there is none. A
  // step's excess is what it takes above the midpoint between the usual time and the window's mean, so that
  // slightly slow steps before the onset don't count. Each step's ratio is capped at `max_ratio`.
  Range SinceLikeliestOnset(int64_t window_ns, double max_ratio) const;
  // The same, with the mean of `slow`, which end with the newest step, in place of a window's. No more steps
  // than these.
  Range SinceLikeliestOnset(const Range& slow, double max_ratio) const;

 private:
  std::deque<RecentStep> steps_;
};

ComparedTime SumOf(const RecentSteps::Range& steps);
// The largest sum of excess times above a ratio that consecutive steps have.
double LargestExcessNs(const RecentSteps::Range& steps, double above);
// Requires a step.
ComparedTime SumWithoutLongest(const RecentSteps::Range& steps);
// The same as SumOf, from the first and the last step alone, which rounds more. Requires a step.
ComparedTime QuickSumOf(const RecentSteps::Range& steps);

}  // namespace gpusonde::diagnose
