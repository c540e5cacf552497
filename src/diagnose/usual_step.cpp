// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/time_range.h"
#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/incident_table.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {
namespace {

// The cause of each of kDisturbedStates.
struct CauseOfState {
  State state;
  CauseId cause;
};
constexpr std::array kCauseOfState = {CauseOfState{State::kInterrupted, CauseId::kInterruptPressure},
                                      CauseOfState{State::kIoThrottled, CauseId::kIoThrottling},
                                      CauseOfState{State::kReclaim, CauseId::kMemoryPressure},
                                      CauseOfState{State::kRunQueue, CauseId::kCpuContention},
                                      CauseOfState{State::kStopped, CauseId::kStopped},
                                      CauseOfState{State::kThrottled, CauseId::kCpuQuota}};
static_assert(std::ranges::equal(kCauseOfState, kDisturbedStates, {}, &CauseOfState::state));

using Largest = std::vector<std::pair<Actor, double>>;

Largest LargestOf(const std::map<Id128, double>& by_process, double per_step, const UsualScope& scope) {
  Shares shares;
  for (const auto& [who, ns] : by_process)
    AddShare(shares, scope.actors.ActorOf(who, scope.program.family), per_step * ns);
  return LargestRises({}, shares, false);
}

std::string Sentence(CauseId id, const std::string& what) {
  const Cause& cause = *AllCauses()[static_cast<size_t>(id)];
  return fmt::format("{} all the time: {}. {}", cause.title, what, cause.advice);
}

// By how much of each step. Other ranks of the job share its CPUs by design.
void AddHostDisturbances(const PathAccount& sum, double per_step, const UsualScope& scope, UsualStep& usual) {
  std::map<Id128, double> others = sum.behind;
  double behind_ranks_ns = 0;
  for (const Id128& rank : scope.program.ranks)
    if (const auto behind = others.extract(rank); !behind.empty())
      behind_ranks_ns += per_step * behind.mapped();
  for (const auto& [state, cause] : kCauseOfState) {
    const double ns = usual.states[state] - (state == State::kRunQueue ? behind_ranks_ns : 0);
    if (ns < kIncidentTable.lasting.share * usual.states.total()) continue;
    std::string what = Percent(ns, usual.states.total()) + " of each step";
    if (state == State::kRunQueue) {
      const std::string who = TakenByOthers(LargestOf(others, per_step, scope), ns);
      if (!who.empty()) what += "; " + who;
    } else if (state == State::kStopped) {
      const Largest who = LargestOf(sum.stopped_by, per_step, scope);
      if (!who.empty() && !who.front().first.name.empty())
        what += fmt::format("; {} lets it continue", NameActor(who.front().first));
    }
    usual.disturbances.push_back({state, Sentence(cause, what)});
  }
  std::ranges::sort(usual.disturbances, std::greater(),
                    [&](const LastingDisturbance& each) { return usual.states[each.state]; });
}

// By how much it is used by others, and how long it is too hot or short of power: for how much each step
// would be shorter otherwise, nothing is measured. A power limit is what many programs run at.
void AddGpuDisturbances(const Id128& device, const TimeRange& time, const UsualScope& scope,
                        UsualStep& usual) {
  Shares neighbours;
  for (const auto& [process, percent] :
       scope.host.ReadingsByProcess(model::Metric::kGpuProcessUtilization, device, time.from_ns, time.to_ns))
    if (!scope.program.family.contains(process) && !scope.program.ranks.contains(process))
      AddShare(neighbours, scope.actors.ActorOf(process, scope.program.family), percent);
  const Largest most = LargestRises({}, neighbours, false);
  if (!most.empty() && most.front().second >= kIncidentTable.lasting.neighbour)
    usual.disturbances.push_back(
        {State::kGpuRun,
         Sentence(CauseId::kGpuNeighbour, fmt::format("{} uses the GPU {:.0f} % of the time",
                                                      NameActor(most.front().first), most.front().second))});
  constexpr uint64_t kPowerCap = 0x4;  // of model::kThrottleReasons
  const double limited = scope.host
                             .MeanReading(model::Metric::kGpuThrottleReasons, device, time.from_ns,
                                          time.to_ns, model::kSlowingThrottleBits & ~kPowerCap)
                             .value_or(0);
  if (limited >= kIncidentTable.lasting.clocks)
    usual.disturbances.push_back(
        {State::kGpuRun,
         Sentence(CauseId::kGpuClocks,
                  fmt::format("heat or the power supply limited the clocks {:.0f} % of the time",
                              100 * limited))});
}

}  // namespace

UsualStep UsualStepOf(const UsualScope& scope) {
  UsualStep usual;
  PathAccount sum;
  TimeRange time{INT64_MAX, INT64_MIN};
  scope.baseline.ForEach([&](const AccountedStep& clean) {
    sum.Add(clean.path, 1);
    ++usual.steps;
    time = {std::min(time.from_ns, clean.step.start_ns), std::max(time.to_ns, clean.step.end_ns)};
  });
  if (static_cast<double>(usual.steps) < kIncidentTable.lasting.min_steps) return {};
  const double per_step = 1 / static_cast<double>(usual.steps);
  usual.states = sum.states;
  usual.states *= per_step;
  AddHostDisturbances(sum, per_step, scope, usual);
  if (usual.states[State::kGpuRun] + usual.states[State::kGpuQueue] >=
      kIncidentTable.lasting.share * usual.states.total())
    for (const Id128& device : scope.devices) AddGpuDisturbances(device, time, scope, usual);
  return usual;
}

}  // namespace gpusonde::diagnose
