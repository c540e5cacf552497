// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The same work takes more CPU time, because of contention for memory bandwidth or caches, or lower clocks.
// The GPU work per step is the same, but the program's other work isn't counted, so the confidence stays low.
constexpr std::array kSlowCpuStates = {State::kCpu, State::kLoader};

constexpr std::array kSlowCpuSupersedes = {
    Superseded{CauseId::kSlowDataLoading, [](const Situation& situation) -> double {
                 return IsUniformlySlower(situation) ? kWeights.slow_cpu.over_slow_data_loading : 0.0;
               }}};

std::optional<Finding> EvaluateSlowCpu(const Situation& situation) {
  if (!IsUniformlySlower(situation) ||
      situation.during[State::kCpu] > kWeights.slow_cpu.max_slowdown * situation.before[State::kCpu])
    return std::nullopt;
  // If loaders slow down as well, it is less likely that the program itself does more.
  const bool both = situation.loader_cpu_before > 0;
  Finding finding{.explained_ns = ExcessOf(situation, kSlowCpuStates),
                  .nats = both ? -kWeights.slow_cpu.both : -kWeights.slow_cpu.one};
  finding.explained_ns = std::max(0.0, finding.explained_ns - StolenNs(situation));
  finding.sentence = fmt::format(
      "the launch thread used {} of CPU time per step ({} before) for the same GPU work{}: memory bandwidth, "
      "caches or clocks slow the CPU down, unless the program itself does more",
      Time(situation.during[State::kCpu]), Time(situation.before[State::kCpu]),
      both ? ", and its loaders ran longer, too" : "");
  return finding;
}

}  // namespace

const Cause& SlowCpu() {
  static constexpr Cause kCause{
      CauseId::kSlowCpu,
      "slow_cpu",
      "CPU slower at the same work",
      "Look at CPU clocks and at what else uses caches and memory (turbostat, perf stat).",
      kSlowCpuStates,
      {},
      kSlowCpuSupersedes,
      EvaluateSlowCpu};
  return kCause;
}

}  // namespace gpusonde::diagnose
