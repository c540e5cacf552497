// SPDX-License-Identifier: Apache-2.0
#include "diagnose/habit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/order_statistics.h"
#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

bool IsLong(double ns, const StepTime& step) { return ns >= kStepTable.habit.min_share * step.total_ns; }

bool Waits(const StepTime& step) { return IsLong(step.idle_ns, step); }

// Whether the median distance from the median is large.
bool AreIrregular(std::vector<double> lengths) {
  const double median = MedianOf(lengths);
  for (double& length : lengths) length = std::abs(length - median);
  return MedianOf(lengths) > kStepTable.habit.irregular * median;
}

}  // namespace

bool Habit::Learn(const StepTime& clean) {
  ++steps_;
  waiting_ += Waits(clean) ? 1 : 0;
  recent_.push_back(clean);
  if (recent_.size() > kStepTable.habit.steps) recent_.pop_front();
  AddOutside(clean);
  return Update(IsShown());
}

bool Habit::LearnSuspect(const StepTime& suspect) {
  AddOutside(suspect);
  return Update(false);
}

bool Habit::Update(bool shown) {
  const bool rare = static_cast<double>(waiting_) < kStepTable.habit.max_rare * static_cast<double>(steps_);
  const bool given_up = rare && steps_ >= kStepTable.habit.steps_until_rare &&
                        outside_ns_ < kStepTable.habit.outside_share / 2 * total_ns_;
  const bool changes = waits_ ? given_up : (shown && !rare) || WaitsWhenEmpty();
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
  return AreIrregular(std::move(idle));
}

void Habit::AddOutside(const StepTime& step) {
  total_ns_ += step.total_ns;
  outside_ns_ += step.outside_ns;
  if (IsLong(step.outside_ns, step)) outside_waits_.push_back(step.outside_ns);
  if (outside_waits_.size() > kStepTable.habit.outside_waits) outside_waits_.pop_front();
}

bool Habit::WaitsWhenEmpty() const {
  return outside_waits_.size() == kStepTable.habit.outside_waits &&
         outside_ns_ >= kStepTable.habit.outside_share * total_ns_ &&
         AreIrregular({outside_waits_.begin(), outside_waits_.end()});
}

}  // namespace gpusonde::diagnose
