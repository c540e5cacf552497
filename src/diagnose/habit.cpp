// SPDX-License-Identifier: Apache-2.0
#include "diagnose/habit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/order_statistics.h"
#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

bool Waits(const StepTime& step) { return step.idle_ns >= kStepTable.habit.min_share * step.total_ns; }

}  // namespace

bool Habit::Learn(const StepTime& clean) {
  ++steps_;
  waiting_ += Waits(clean) ? 1 : 0;
  recent_.push_back(clean);
  if (recent_.size() > kStepTable.habit.steps) recent_.pop_front();
  const bool rare = static_cast<double>(waiting_) < kStepTable.habit.max_rare * static_cast<double>(steps_);
  const bool changes = waits_ ? rare && steps_ >= kStepTable.habit.steps_until_rare : !rare && IsShown();
  waits_ ^= changes;
  return changes;
}

// Whether half of the recent steps wait, and mostly by choice or for irregular times.
bool Habit::IsShown() const {
  if (recent_.size() < kStepTable.habit.steps) return false;
  const double enough = kStepTable.habit.min_waiting * static_cast<double>(recent_.size());
  if (static_cast<double>(std::ranges::count_if(recent_, Waits)) < enough) return false;
  const auto chosen =
      std::ranges::count_if(recent_, [](const StepTime& step) { return step.asleep_ns > step.idle_ns / 2; });
  if (static_cast<double>(chosen) > enough) return true;
  std::vector<double> idle;
  for (const StepTime& step : recent_) idle.push_back(step.idle_ns);
  const double median = MedianOf(idle);
  for (double& value : idle) value = std::abs(value - median);
  return MedianOf(idle) > kStepTable.habit.irregular * median;
}

}  // namespace gpusonde::diagnose
