// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_time.h"

#include <algorithm>

namespace gpusonde::diagnose {
namespace {

using model::Metric;

struct StateInfo {
  Metric metric;
  bool has_other;  // another process is responsible for it
};

// By ThreadState.
constexpr std::array<StateInfo, kThreadStates> kStateInfo = {{
    {Metric::kThreadRunning, false},
    {Metric::kThreadRunQueue, true},
    {Metric::kThreadBlockedIo, false},
    {Metric::kThreadBlocked, false},
    {Metric::kThreadWaiting, true},
    {Metric::kThreadSleeping, false},
    {Metric::kThreadNetwork, true},
    {Metric::kThreadStopped, true},
    {Metric::kThreadInterrupted, false},
    {Metric::kThreadReclaim, false},
    {Metric::kThreadDisplaced, true},
}};

}  // namespace

std::optional<ThreadState> ThreadStateOf(Metric metric) {
  const auto found = std::ranges::find(kStateInfo, metric, &StateInfo::metric);
  if (found == kStateInfo.end()) return std::nullopt;
  return static_cast<ThreadState>(found - kStateInfo.begin());
}

double ThreadTime::total() const {
  double sum = 0;
  for (size_t i = 0; i < kExclusiveThreadStates; ++i) sum += states_.ns[i];
  return sum;
}

double ThreadTime::By(ThreadState state, const Id128& other) const {
  for (const auto& [id, ns] : By(state))
    if (id == other) return ns;
  return 0;
}

void ThreadTime::Add(ThreadState state, double ns, const Id128& other) {
  states_[state] += ns;
  if (kStateInfo[static_cast<size_t>(state)].has_other) AddByOther(state, ns, other);
}

void ThreadTime::AddByOther(ThreadState state, double ns, const Id128& other) {
  const std::pair key(state, other);
  const auto at = std::ranges::lower_bound(
      by_other_, key, {}, [](const ByOther& entry) { return std::pair(entry.state, entry.other); });
  if (at != by_other_.end() && at->state == state && at->other == other)
    at->ns += ns;
  else
    by_other_.insert(at, {.state = state, .other = other, .ns = ns});
}

void ThreadTime::Add(const ThreadTime& other, double factor) {
  TimeBy<ThreadState, kThreadStates> factors;
  factors.ns.fill(factor);
  Add(other, factors);
}

void ThreadTime::Add(const ThreadTime& other, const TimeBy<ThreadState, kThreadStates>& factors) {
  for (size_t i = 0; i < kThreadStates; ++i) states_.ns[i] += factors.ns[i] * other.states_.ns[i];
  for (const ByOther& entry : other.by_other_)
    AddByOther(entry.state, factors[entry.state] * entry.ns, entry.other);
}

}  // namespace gpusonde::diagnose
