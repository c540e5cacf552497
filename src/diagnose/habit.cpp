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
  AddRequest(clean);
  const bool waited_for_sleepers = waits_for_sleepers();
  UpdateSleepers(clean);
  return Update(IsShown()) || waits_for_sleepers() != waited_for_sleepers;
}

bool Habit::LearnSuspect(const StepTime& suspect) {
  AddRequest(suspect);
  return Update(false);
}

bool Habit::Update(bool shown) {
  const bool rare = static_cast<double>(waiting_) < kStepTable.habit.max_rare * static_cast<double>(steps_);
  if (waits_) {
    const bool given_up = rare && steps_ >= kStepTable.habit.steps_until_rare && !HasRequests(0.5) &&
                          !(by_idle_time_ && IsOftenIdle(0.5));
    if (!given_up) return false;
    waits_ = false;
    requests_.clear();
    idle_.clear();
    return true;
  }
  by_idle_time_ = IdlesWhenEmpty();
  waits_ = (shown && !rare) || WaitsWhenEmpty() || by_idle_time_;
  return waits_;
}

void Habit::UpdateSleepers(const StepTime& clean) {
  clean_idle_ns_ += clean.idle_ns;
  clean_others_asleep_ns_ += clean.others_asleep_ns;
  const double share = kStepTable.habit.sleepers_share * (for_sleepers_ ? 0.5 : 1);
  for_sleepers_ = clean_others_asleep_ns_ > share * clean_idle_ns_;
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

void Habit::AddRequest(const StepTime& step) {
  const double request_ns = step.outside_ns + step.packets_ns;
  total_ns_ += step.total_ns;
  idle_ns_ += step.idle_ns;
  outside_ns_ += step.outside_ns;
  packets_ns_ += step.packets_ns;
  const auto keep = [&step](double ns, std::deque<double>& newest) {
    if (IsLong(ns, step)) newest.push_back(ns);
    if (newest.size() > kStepTable.habit.requests) newest.pop_front();
  };
  keep(request_ns, requests_);
  keep(step.idle_ns, idle_);
}

// Whether waits for requests take this part of the time that shows them.
bool Habit::HasRequests(double part) const {
  return outside_ns_ >= part * kStepTable.habit.outside_share * total_ns_ ||
         outside_ns_ + packets_ns_ >= part * kStepTable.habit.packets_share * total_ns_;
}

bool Habit::IsOftenIdle(double part) const {
  return idle_ns_ >= part * kStepTable.habit.idle_share * total_ns_;
}

bool Habit::WaitsWhenEmpty() const {
  return requests_.size() == kStepTable.habit.requests && HasRequests(1) &&
         AreIrregular({requests_.begin(), requests_.end()});
}

bool Habit::IdlesWhenEmpty() const {
  return steps_ >= kStepTable.habit.steps_until_rare && idle_.size() == kStepTable.habit.requests &&
         IsOftenIdle(1) && AreIrregular({idle_.begin(), idle_.end()});
}

}  // namespace gpusonde::diagnose
