// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Memory has to be freed before the step gets any. Pages that come back from disk look like block I/O.
constexpr std::array kStatesOf = {State::kReclaim};
constexpr std::array kCases = {
    Case{model::Metric::kHostPressureMemory, Case::Expect::kRises, 0.02, 1,
         "somebody waited for memory more than before"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // Refaults: waiting for a disk while memory is what everybody waits for.
  if (situation.Of(model::Metric::kHostPressureMemory).rise() > 0.05 &&
      situation.excess(State::kBlockedIo) > 0)
    finding.explained_ns += situation.excess(State::kBlockedIo);
  finding.sentence =
      fmt::format("what feeds the GPU looked for memory to free {}", ShareOf(situation, State::kReclaim));
  return finding;
}

}  // namespace

const Cause& MemoryPressure() {
  static constexpr Cause kCause{"memory_pressure", "Memory pressure", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
