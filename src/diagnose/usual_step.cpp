// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time_range.h"
#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/detector_table.h"
#include "diagnose/incident_table.h"
#include "diagnose/situation_builder.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {
namespace {

const Cause& CauseOf(CauseId id) { return *AllCauses()[static_cast<size_t>(id)]; }

// The cause that explains this state and no other.
const Cause& CauseOf(State state) {
  const auto is_of_state = [&](const Cause* cause) {
    return cause->states.size() == 1 && cause->states.front() == state;
  };
  return **std::ranges::find_if(AllCauses(), is_of_state);
}

using Largest = std::vector<std::pair<Actor, double>>;

Largest LargestOf(const std::map<Id128, double>& by_process, double per_step,
                  const SituationContext& context) {
  return LargestRises({}, SharesOf(by_process, per_step, context), false);
}

constexpr double kAlways = 0.9;  // of the time
constexpr std::string_view kAllTheTime = "all the time", kPartOfTheTime = "a part of the time";

std::string Sentence(const Cause& cause, const std::string& what, std::string_view when = kAllTheTime) {
  return fmt::format("{} {}: {}. {}", cause.title, when, what, cause.advice);
}

// Adds what delays each step by a tenth or more. Other ranks of the job don't count: they share its CPUs by
// design. `when`: from the first of these steps to the last.
void AddHostDisturbances(const PathAccount& sum, double per_step, const TimeRange& when,
                         const SituationContext& context, UsualStep& usual) {
  std::map<Id128, double> others = sum.behind;
  double behind_ranks_ns = 0;
  for (const Id128& rank : context.program.ranks)
    if (const auto behind = others.extract(rank); !behind.empty())
      behind_ranks_ns += per_step * behind.mapped();
  for (const State state : kDisturbedStates) {
    const double ns = usual.states[state] - (state == State::kRunQueue ? behind_ranks_ns : 0);
    if (ns < kIncidentTable.lasting.share * usual.states.total()) continue;
    std::string what = Percent(ns, usual.states.total()) + " of each step";
    if (state == State::kRunQueue) {
      const std::string who = TakenByOthers(LargestOf(others, per_step, context), ns);
      if (!who.empty()) what += "; " + who;
      what += OwnPriority(
          context.host.RateWhileMeasured(model::Metric::kProcessNice, context.program.process, when));
    } else if (state == State::kStopped) {
      const Largest who = LargestOf(sum.stopped_by, per_step, context);
      if (!who.empty() && !who.front().first.name.empty())
        what += fmt::format("; {} lets it continue", NameActor(who.front().first));
    }
    usual.disturbances.push_back({state, Sentence(CauseOf(state), what)});
  }
  std::ranges::sort(usual.disturbances, std::greater(),
                    [&](const LastingDisturbance& each) { return usual.states[each.state]; });
}

// Adds the rank that comes last in most steps, if these wait for it a quarter of the time or more: the load
// of a job may have been uneven, or one of its machine's ranks disturbed, from the first step on.
void AddStraggler(const PathAccount& sum, const SituationContext& context, UsualStep& usual) {
  const double waited_ns = sum.states[State::kPeer];
  if (waited_ns < kIncidentTable.lasting.straggler * sum.states.total()) return;
  for (const auto& [who, rank] : sum.ranks)
    if (rank.states.total() + rank.idle >= kIncidentTable.lasting.same_rank * waited_ns)
      usual.disturbances.push_back(
          {State::kPeer,
           Sentence(CauseOf(CauseId::kStraggler),
                    fmt::format("{} of each step is a wait for {}, which comes last",
                                Percent(waited_ns, sum.states.total()),
                                NameActor(context.actors.ActorOf(who, context.program.family))))});
}

// The times in which clean steps follow each other, without the incidents between them, each with its share
// of the total. `steps` are ranges of steps in any order; steps of one time are no further apart than the
// calm after which an incident is over.
std::vector<std::pair<TimeRange, double>> TimesOf(std::vector<TimeRange> steps) {
  std::ranges::sort(steps, {}, &TimeRange::from_ns);
  for (TimeRange& step : steps) step.to_ns += kDetector.calm.ns;
  double all_ns = 0;
  std::vector<std::pair<TimeRange, double>> times;
  for (TimeRange time : UnionOf(std::move(steps))) {
    time.to_ns -= kDetector.calm.ns;
    times.emplace_back(time, static_cast<double>(time.to_ns - time.from_ns));
    all_ns += times.back().second;
  }
  for (auto& [time, share] : times) share /= all_ns;
  return times;
}

// The GPU utilization (%) of other programs in the range.
Shares NeighboursIn(const TimeRange& range, const Id128& device, const SituationContext& context) {
  Shares neighbours;
  for (const auto& [process, percent] :
       context.host.ReadingsByProcess(model::Metric::kGpuProcessUtilization, device, range))
    if (!context.program.family.contains(process) && !context.program.ranks.contains(process))
      AddShare(neighbours, context.actors.ActorOf(process, context.program.family), percent);
  return neighbours;
}

// Whether a program used the GPU in all of these times but a tenth, and so until their end. Its utilization
// is read once a second.
bool IsAlwaysThere(const Actor& neighbour, const Id128& device,
                   const std::vector<std::pair<TimeRange, double>>& times, const SituationContext& context) {
  constexpr int64_t kPresenceNs = 3 * kNanosPerSecond / 2;
  double there = 0, windows = 0;
  for (const auto& [time, share] : times)
    for (int64_t to_ns = time.to_ns; to_ns == time.to_ns || to_ns - kPresenceNs >= time.from_ns;
         to_ns -= kPresenceNs) {
      const Shares used = NeighboursIn({to_ns - kPresenceNs, to_ns}, device, context);
      const auto found = used.find(neighbour);
      there += found != used.end() && found->second > 0 ? 1 : 0;
      windows += 1;
    }
  return there >= kAlways * windows;
}

// Adds other programs that use the GPU for a tenth of the time, and heat or a weak power supply that limits
// its clocks most of the time. How much shorter steps would be otherwise is not measured. A power limit
// doesn't count, as many programs run at it.
void AddGpuDisturbances(const Id128& device, const std::vector<std::pair<TimeRange, double>>& times,
                        const SituationContext& context, UsualStep& usual) {
  Shares neighbours;
  double limited = 0;
  for (const auto& [time, share] : times) {
    for (const auto& [actor, percent] : NeighboursIn(time, device, context))
      AddShare(neighbours, actor, share * percent);
    limited += share * context.host
                           .MeanReading(model::Metric::kGpuThrottleReasons, device, time,
                                        model::kSlowingThrottleBits & ~model::kThrottlePowerCap)
                           .value_or(0);
  }
  const Largest most = LargestRises({}, neighbours, false);
  if (!most.empty() && most.front().second >= kIncidentTable.lasting.neighbour)
    usual.disturbances.push_back(
        {State::kGpuRun,
         Sentence(CauseOf(CauseId::kGpuNeighbour),
                  fmt::format("{} uses the GPU {:.0f} % of the time", NameActor(most.front().first),
                              most.front().second),
                  IsAlwaysThere(most.front().first, device, times, context) ? kAllTheTime : kPartOfTheTime)});
  if (limited >= kIncidentTable.lasting.clocks)
    usual.disturbances.push_back(
        {State::kGpuRun,
         Sentence(
             CauseOf(CauseId::kGpuClocks),
             fmt::format("heat or the power supply limited the clocks {:.0f} % of the time", 100 * limited),
             limited >= kAlways ? kAllTheTime : kPartOfTheTime)});
}

}  // namespace

UsualStep UsualStepOf(const SituationContext& context) {
  UsualStep usual;
  PathAccount sum;
  std::vector<TimeRange> steps;
  const int64_t since_ns = context.baseline.RecentSince();
  context.baseline.ForEach([&](const AccountedStep& clean) {
    if (clean.step.start_ns < since_ns) return;
    sum.Add(clean.path, 1);
    ++usual.steps;
    steps.push_back({clean.step.start_ns, clean.step.end_ns});
  });
  const auto count = static_cast<double>(usual.steps);
  if (count < kIncidentTable.usual.min_steps) return {};
  const double per_step = 1 / count;
  usual.states = sum.states;
  usual.states *= per_step;
  usual.between = sum.between;
  usual.between *= per_step;
  if (count < kIncidentTable.lasting.min_steps) return usual;
  const TimeRange when{std::ranges::min(steps, {}, &TimeRange::from_ns).from_ns,
                       std::ranges::max(steps, {}, &TimeRange::to_ns).to_ns};
  AddHostDisturbances(sum, per_step, when, context, usual);
  AddStraggler(sum, context, usual);
  if (usual.states[State::kGpuRun] + usual.states[State::kGpuQueue] >=
      kIncidentTable.lasting.share * usual.states.total()) {
    const auto times = TimesOf(std::move(steps));
    for (const Id128& device : context.devices) AddGpuDisturbances(device, times, context, usual);
  }
  return usual;
}

}  // namespace gpusonde::diagnose
