// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/id128.h"
#include "diagnose/path_account.h"
#include "diagnose/step_finder.h"

namespace gpusonde::diagnose {

// A step and its account. The account is complete once all signals of the step's threads have arrived: a
// signal is emitted only when its state ends, and a loader may run for long.
struct AccountedStep {
  StepSpan step;        // without the waits for requests that aren't part of it (habit.h)
  int64_t from_ns = 0;  // its start with these waits
  int32_t launch_thread = 0;
  PathAccount path;
  bool complete = false;
  bool observed = false;  // complete, and host signals of the launch thread were observed from its start on
  bool clean = false;     // joins the baseline when its account is complete
  bool slow = false;      // counted in the sum of slow steps
};

// Returns the time in which the path was stopped or blocked, or waited for something that was idle itself,
// ns.
inline double IdleNs(const PathAccount& path) {
  double idle = 0;
  for (const State state : {State::kStopped, State::kBlocked, State::kWaiting, State::kUnexplained})
    idle += path.states[state];
  for (const auto& [who, rank] : path.ranks) idle += rank.idle;
  return idle;
}

// The sum of the accounts of some steps, and their number by type.
struct StepSum {
  PathAccount path;
  std::map<Id128, int64_t> types;
  double max_idle_ns = 0;  // the longest idle time (IdleNs) of any step that was ever added

  void Add(const AccountedStep& accounted) {
    path.Add(accounted.path, 1);
    max_idle_ns = std::max(max_idle_ns, IdleNs(accounted.path));
    ++types[accounted.step.type];
  }
  void Remove(const AccountedStep& accounted) {
    path.Add(accounted.path, -1);
    --types[accounted.step.type];
  }
  void Add(const StepSum& other) {
    path.Add(other.path, 1);
    max_idle_ns = std::max(max_idle_ns, other.max_idle_ns);
    for (const auto& [type, count] : other.types) types[type] += count;
  }
  void Remove(const StepSum& other) {
    path.Add(other.path, -1);
    for (const auto& [type, count] : other.types) types[type] -= count;
  }
};

}  // namespace gpusonde::diagnose
