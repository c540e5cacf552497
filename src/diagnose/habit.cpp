// SPDX-License-Identifier: Apache-2.0
#include "diagnose/habit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "diagnose/median.h"

namespace gpusonde::diagnose {
namespace {

constexpr size_t kSteps = 40;
// A step waits if it spends this share of its time so; shorter waits for remote disks are hidden by GPU work.
constexpr double kMinShare = 0.25;
// Of the last kSteps steps, so many wait if it is a habit.
constexpr double kMinWaiting = 0.5;
// Median distance from the median, over the median: 0.7 for requests that arrive at random, 0.5 for waits of
// any length up to a bound; other nodes of a job are late by about the same time.
constexpr double kIrregular = 0.35;
// The habit is given up if fewer of all steps waited, after this many. Of all steps, so that a server's busy
// hour doesn't end it.
constexpr double kMaxRare = 0.1;
constexpr int64_t kStepsUntilRare = 200;

bool Waits(const StepTime& step) { return step.idle_ns >= kMinShare * step.total_ns; }

}  // namespace

bool Habit::Learn(const StepTime& clean) {
  ++steps_;
  waiting_ += Waits(clean) ? 1 : 0;
  recent_.push_back(clean);
  if (recent_.size() > kSteps) recent_.pop_front();
  const bool rare = static_cast<double>(waiting_) < kMaxRare * static_cast<double>(steps_);
  const bool changes = waits_ ? rare && steps_ >= kStepsUntilRare : !rare && IsShown();
  waits_ ^= changes;
  return changes;
}

// Whether half of the recent steps wait, and mostly by choice or for irregular times.
bool Habit::IsShown() const {
  if (recent_.size() < kSteps) return false;
  if (static_cast<double>(std::ranges::count_if(recent_, Waits)) < kMinWaiting * kSteps) return false;
  const auto chosen =
      std::ranges::count_if(recent_, [](const StepTime& step) { return step.asleep_ns > step.idle_ns / 2; });
  if (static_cast<double>(chosen) > kMinWaiting * kSteps) return true;
  std::vector<double> idle;
  for (const StepTime& step : recent_) idle.push_back(step.idle_ns);
  const double median = MedianOf(idle);
  for (double& value : idle) value = std::abs(value - median);
  return MedianOf(idle) > kIrregular * median;
}

}  // namespace gpusonde::diagnose
