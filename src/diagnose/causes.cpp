// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"

namespace gpusonde::diagnose {

#define GPUSONDE_CAUSE(name) const Cause& name();
GPUSONDE_CAUSES(GPUSONDE_CAUSE)
#undef GPUSONDE_CAUSE

std::span<const Cause* const> AllCauses() {
#define GPUSONDE_CAUSE(name) &name(),
  static const std::array<const Cause*, kCauses> kAll = {GPUSONDE_CAUSES(GPUSONDE_CAUSE)};
#undef GPUSONDE_CAUSE
  return kAll;
}

std::optional<CauseId> FindCause(std::string_view name) {
  for (const Cause* cause : AllCauses())
    if (cause->name == name) return cause->id;
  return std::nullopt;
}

std::string_view NameOf(CauseId cause) { return AllCauses()[static_cast<size_t>(cause)]->name; }

double ExcessOf(const Situation& situation, std::span<const State> states) {
  double sum = 0;
  for (const State state : states) sum += situation.excess(state);
  return std::max(sum, 0.0);
}

bool MakesNoProgress(const Situation& situation) {
  return situation.unfinished && situation.silent_ns >= kHungNs;
}

bool IsBlockedByDisks(const Situation& situation) {
  constexpr std::array kBlocked = {State::kBlockedIo, State::kBlocked};
  return situation.excess(State::kBlockedIo) >=
             kWeights.block_io.min_io_share * ExcessOf(situation, kBlocked) ||
         situation.Of(model::Metric::kHostPressureIo).rise() >= kWeights.pressure.io_rise;
}

bool WorksWithoutGpu(const Situation& situation) {
  const Change utilization = situation.Of(model::Metric::kGpuUtilization);
  if (!utilization.known() || *utilization.during > kWeights.hang.busy_gpu) return false;
  constexpr std::array kWork = {State::kCpu, State::kLoader};
  return ExcessOf(situation, kWork) > kWeights.hang.worked * situation.excess_ns();
}

bool WaitsForOwnThreads(const Situation& situation) {
  const double rise_ns = situation.own_threads_during - situation.own_threads_before;
  return rise_ns > 0 && rise_ns > situation.excess(State::kLoader) / 2;
}

HelperCpu HelperCpuOf(const Situation& situation) {
  return WaitsForOwnThreads(situation)
             ? HelperCpu{situation.own_threads_cpu_before, situation.own_threads_cpu_during}
             : HelperCpu{situation.loader_cpu_before, situation.loader_cpu_during};
}

bool IsUniformlySlower(const Situation& situation) {
  // The growth of next to nothing says nothing.
  if (situation.excess(State::kCpu) < kWeights.slow_cpu.min_share * situation.lost_ns()) return false;
  const auto growth = [](double before, double during) { return before > 0 ? during / before - 1 : 0; };
  const double launch_thread = growth(situation.before[State::kCpu], situation.during[State::kCpu]);
  if (!WaitsForOwnThreads(situation) && situation.loader_cpu_before <= 0)
    return launch_thread > kWeights.slow_cpu.min_growth;
  const HelperCpu cpu = HelperCpuOf(situation);
  const double loader = growth(cpu.before_ns, cpu.during_ns);
  return std::min(launch_thread, loader) > kWeights.slow_cpu.min_growth &&
         std::max(launch_thread, loader) < kWeights.slow_cpu.alike * std::min(launch_thread, loader);
}

double StolenNs(const Situation& situation) {
  return std::max(0.0, situation.Of(model::Metric::kHostSteal).rise()) * situation.during.total();
}

bool IsReclaimingMemory(const Situation& situation) {
  return situation.excess(State::kReclaim) > kWeights.memory_pressure.reclaiming * situation.excess_ns();
}

std::optional<std::pair<Actor, double>> DiskUser(const Situation& situation) {
  std::optional<std::pair<Actor, double>> most;
  for (const bool own : {false, true})
    for (auto& [actor, rise] : LargestRises(situation.disk_before, situation.disk_during, own)) {
      if (IsSelf(actor) || rise <= kWeights.block_io.noticeable_bytes) continue;
      if (!most.has_value() || rise > most->second) most.emplace(actor, rise);
    }
  return most;
}

const RankPart* LastRank(const Situation& situation) {
  const auto last = std::ranges::max_element(situation.ranks, {}, &RankPart::rise);
  return last == situation.ranks.end() || last->rise() <= 0 ? nullptr : &*last;
}

const RankActivity* MainActivity(const RankPart& rank) {
  static constexpr std::array kActivities = {
      RankActivity{State::kCpu, CauseId::kSlowCpu, "it ran longer"},
      RankActivity{State::kRunQueue, CauseId::kCpuContention, "it waited for a CPU"},
      RankActivity{State::kBlockedIo, CauseId::kBlockIo, "it waited for a disk"},
      RankActivity{State::kBlocked, std::nullopt, "it was blocked in the kernel"},
      RankActivity{State::kReclaim, CauseId::kMemoryPressure, "it reclaimed memory"},
      RankActivity{State::kInterrupted, CauseId::kInterruptPressure, "interrupts took its CPU"},
      RankActivity{State::kSleeping, std::nullopt, "it slept"},
      RankActivity{State::kStopped, CauseId::kStopped,
                   "it was stopped by a signal, a tracer or a frozen cgroup"}};
  const auto rise_in = [&](const RankActivity& activity) {
    return rank.during[activity.state] - rank.before[activity.state];
  };
  const RankActivity* most = std::ranges::max_element(kActivities, {}, rise_in);
  return rise_in(*most) < kWeights.straggler.activity_share * rank.rise() ? nullptr : most;
}

double OverStraggler(CauseId network, const Situation& situation) {
  const RankPart* last = LastRank(situation);
  if (last == nullptr || last->cause != network) return 0;
  return MainActivity(*last) == nullptr ? kWeights.network.over_straggler
                                        : kWeights.network.over_busy_straggler;
}

}  // namespace gpusonde::diagnose
