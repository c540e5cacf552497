// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/incident_table.h"

namespace gpusonde::diagnose {
namespace {

// The cause of each of kDisturbedStates.
struct CauseOfState {
  State state;
  CauseId cause;
};
constexpr std::array kCauseOfState = {CauseOfState{State::kInterrupted, CauseId::kInterruptPressure},
                                      CauseOfState{State::kIoThrottled, CauseId::kIoThrottling},
                                      CauseOfState{State::kNetworkQueue, CauseId::kNetworkContention},
                                      CauseOfState{State::kReclaim, CauseId::kMemoryPressure},
                                      CauseOfState{State::kRunQueue, CauseId::kCpuContention},
                                      CauseOfState{State::kStopped, CauseId::kStopped},
                                      CauseOfState{State::kThrottled, CauseId::kCpuQuota}};
static_assert(std::ranges::equal(kCauseOfState, kDisturbedStates, {}, &CauseOfState::state));

}  // namespace

UsualStep UsualStepOf(const CleanBaseline& baseline, const Actors& actors, const std::set<Id128>& family) {
  UsualStep usual;
  PathAccount sum;
  baseline.ForEach([&](const AccountedStep& clean) {
    sum.Add(clean.path, 1);
    ++usual.steps;
  });
  if (static_cast<double>(usual.steps) < kIncidentTable.disturbed.min_steps) return {};
  const double per_step = 1 / static_cast<double>(usual.steps);
  usual.states = sum.states;
  usual.states *= per_step;
  Shares takers;
  for (const auto& [who, ns] : sum.behind) AddShare(takers, actors.ActorOf(who, family), per_step * ns);
  for (const auto& [state, id] : kCauseOfState) {
    if (usual.states[state] < kIncidentTable.disturbed.lasting * usual.states.total()) continue;
    const Cause& cause = *AllCauses()[static_cast<size_t>(id)];
    const auto who =
        state == State::kRunQueue ? LargestRises({}, takers, false) : std::vector<std::pair<Actor, double>>{};
    usual.disturbances.push_back({state, fmt::format("{} all the time: {} of each step{}. {}", cause.title,
                                                     Percent(usual.states[state], usual.states.total()),
                                                     who.empty() ? "" : "; " + TakenBy(who), cause.advice)});
  }
  std::ranges::sort(usual.disturbances, std::greater(),
                    [&](const LastingDisturbance& each) { return usual.states[each.state]; });
  return usual;
}

}  // namespace gpusonde::diagnose
