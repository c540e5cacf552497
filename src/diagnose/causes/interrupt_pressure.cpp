// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Interrupts and softirqs take the CPU from under the step, or ksoftirqd does.
constexpr std::array kStatesOf = {State::kInterrupted};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // To get into a handler and out again, through a hypervisor often, and to find the caches filled with what
  // it read, costs a thread about as much again, which looks like its own time.
  finding.explained_ns += std::clamp(situation.excess(State::kCpu), 0.0, finding.explained_ns);
  for (const auto& [party, ns] : WhoRose(situation.cpu_before, situation.cpu_during, false))
    if (party.name.starts_with("ksoftirqd/")) finding.explained_ns += ns;
  finding.sentence =
      fmt::format("interrupts took {} from each step", Millis(situation.during[State::kInterrupted]));
  return finding;
}

}  // namespace

const Cause& InterruptPressure() {
  static constexpr Cause kCause{"interrupt_pressure", "Interrupt pressure", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
