// SPDX-License-Identifier: Apache-2.0
#include "diagnose/habit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gpusonde::diagnose {
namespace {

constexpr size_t kSteps = 20;
constexpr double kMinShare = 0.25;  // of the time; shorter waits for remote disks are hidden by GPU work
// Standard deviation over mean: requests arrive at random, other nodes of a job are late by the same time.
constexpr double kIrregular = 0.5;

}  // namespace

bool Habit::Learn(const PathAccount& clean) {
  if (waits_) return false;
  steps_.push_back({clean.states.total(), clean.idle.total(), clean.idle[State::kSleeping]});
  if (steps_.size() > kSteps) steps_.pop_front();
  if (steps_.size() < kSteps) return false;
  double total = 0, idle = 0, asleep = 0, squares = 0;
  for (const Step& step : steps_) {
    total += step.total_ns;
    idle += step.idle_ns;
    asleep += step.asleep_ns;
    squares += step.idle_ns * step.idle_ns;
  }
  if (idle < kMinShare * total) return false;
  const double mean = idle / kSteps;
  const double deviation = std::sqrt(std::max(0.0, squares / kSteps - mean * mean));
  // A sleep (nanosleep) is always the program's own choice.
  waits_ = asleep > idle / 2 || deviation > kIrregular * mean;
  if (waits_) steps_.clear();
  return waits_;
}

}  // namespace gpusonde::diagnose
