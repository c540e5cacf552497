// SPDX-License-Identifier: Apache-2.0
#include "diagnose/recent_steps.h"

#include <algorithm>

#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {

void RecentSteps::Add(const TimedStep& step, double usual_ns) {
  const ComparedTime time{.ns = step.length_ns(), .usual_ns = usual_ns};
  ComparedTime so_far = steps_.empty() ? ComparedTime{} : newest().so_far;
  so_far += time;
  steps_.push_back({.start_ns = step.start_ns,
                    .end_ns = step.end_ns,
                    .time = time,
                    .ratio = time.ns / usual_ns,
                    .so_far = so_far});
  while (steps_.size() > kDetector.mean.min_recent &&
         steps_.front().end_ns < step.end_ns - 2 * kDetector.calm.ns)
    steps_.pop_front();
}

RecentSteps::Range RecentSteps::Since(int64_t time_ns) const {
  return {std::ranges::lower_bound(steps_, time_ns, {}, &RecentStep::start_ns), steps_.end()};
}

RecentSteps::Range RecentSteps::Within(int64_t window_ns) const {
  if (steps_.empty()) return {steps_.end(), steps_.end()};
  return {std::ranges::upper_bound(steps_, newest().end_ns - window_ns, {}, &RecentStep::end_ns),
          steps_.end()};
}

RecentSteps::Range RecentSteps::SinceLikeliestOnset(int64_t window_ns, double max_ratio) const {
  return SinceLikeliestOnset(Within(window_ns), max_ratio);
}

RecentSteps::Range RecentSteps::SinceLikeliestOnset(const Range& slow, double max_ratio) const {
  ComparedTime sum;
  for (const RecentStep& step : slow | std::views::reverse) sum += step.Capped(max_ratio);
  return SinceLargestExcess((1 + std::max(sum.slowdown(), kDetector.min.slowdown.value)) / 2, max_ratio);
}

RecentSteps::Range RecentSteps::SinceLargestExcess(double above, double max_ratio) const {
  auto onset = steps_.end();
  double excess_ns = 0, most_ns = 0;
  for (auto step = steps_.end(); step != steps_.begin();) {
    --step;
    excess_ns += (std::min(step->ratio, max_ratio) - above) * step->time.usual_ns;
    if (excess_ns <= most_ns) continue;
    most_ns = excess_ns;
    onset = step;
  }
  return {onset, steps_.end()};
}

ComparedTime SumOf(const RecentSteps::Range& steps) {
  ComparedTime sum;
  for (const RecentStep& step : steps) sum += step.time;
  return sum;
}

double LargestExcessNs(const RecentSteps::Range& steps, double above) {
  double largest_ns = 0, sum_ns = 0;
  for (const RecentStep& step : steps) {
    sum_ns = std::max(sum_ns + step.time.ns - above * step.time.usual_ns, 0.0);
    largest_ns = std::max(largest_ns, sum_ns);
  }
  return largest_ns;
}

ComparedTime SumWithoutLongest(const RecentSteps::Range& steps) {
  ComparedTime sum = SumOf(steps);
  sum -= std::ranges::max_element(steps, {}, &RecentStep::ratio)->time;
  return sum;
}

ComparedTime QuickSumOf(const RecentSteps::Range& steps) {
  ComparedTime before = steps.front().so_far;
  before -= steps.front().time;
  ComparedTime sum = steps.back().so_far;
  sum -= before;
  return sum;
}

}  // namespace gpusonde::diagnose
