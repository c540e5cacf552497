// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Memory has to be reclaimed before the step gets any. Reading evicted pages again looks like block I/O.
constexpr std::array kStatesOf = {State::kReclaim};
constexpr std::array kExpectations = {
    Expectation{model::Metric::kHostPressureMemory, Expectation::Direction::kRises, 0.02, 1,
                "tasks waited for memory longer than before"},
};

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // Refaults: under memory pressure, I/O wait is counted as well.
  if (situation.Of(model::Metric::kHostPressureMemory).rise() > 0.05 &&
      situation.excess(State::kBlockedIo) > 0)
    finding.explained_ns += situation.excess(State::kBlockedIo);
  finding.sentence = fmt::format("the step had to reclaim memory {}", ShareOf(situation, State::kReclaim));
  return finding;
}

}  // namespace

const Cause& MemoryPressure() {
  static constexpr Cause kCause{"memory_pressure", "Memory pressure", kStatesOf, kExpectations, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
