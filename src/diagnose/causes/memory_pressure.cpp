// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Memory has to be reclaimed before the step gets any. Reading evicted pages again looks like block I/O.
constexpr std::array kMemoryPressureStates = {State::kReclaim};
constexpr std::array kMemoryPressureExpectations = {
    Expectation{model::Metric::kHostPressureMemory, Expectation::Direction::kRises,
                &kWeights.pressure.memory_rise, &kWeights.pressure.memory,
                "tasks waited for memory longer than before"},
};

constexpr std::array kMemoryPressureSupersedes = {
    Superseded{CauseId::kBlockIo,
               // The program reads evicted pages again, unless another one uses the disks.
               [](const Situation& situation) -> double {
                 const auto user = DiskUser(situation);
                 return user.has_value() && user->first.own && IsReclaimingMemory(situation)
                            ? kWeights.memory_pressure.over_block_io
                            : 0.0;
               }},
    Superseded{CauseId::kSlowDataLoading,
               // The reclaim is done by the kernel within the loaders' CPU time.
               [](const Situation& situation) -> double {
                 return IsReclaimingMemory(situation) ? kWeights.memory_pressure.over_slow_data_loading : 0.0;
               }},
};

std::optional<Finding> EvaluateMemoryPressure(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kMemoryPressureStates)};
  // Refaults: under memory pressure, I/O wait is counted as well.
  if (situation.Of(model::Metric::kHostPressureMemory).rise() > kWeights.memory_pressure.refault_pressure &&
      situation.excess(State::kBlockedIo) > 0)
    finding.explained_ns += situation.excess(State::kBlockedIo);
  finding.sentence = fmt::format("the step had to reclaim memory {}", ShareOf(situation, State::kReclaim));
  return finding;
}

}  // namespace

const Cause& MemoryPressure() {
  static constexpr Cause kCause{
      CauseId::kMemoryPressure,  "memory_pressure",
      "Memory pressure",         "Raise its cgroup's memory limit (memory.max), or keep less in memory.",
      kMemoryPressureStates,     kMemoryPressureExpectations,
      kMemoryPressureSupersedes, EvaluateMemoryPressure};
  return kCause;
}

}  // namespace gpusonde::diagnose
