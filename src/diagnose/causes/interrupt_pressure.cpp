// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Interrupts and softirqs, or ksoftirqd, take CPU time from the step.
constexpr std::array kInterruptPressureStates = {State::kInterrupted};

std::optional<Finding> EvaluateInterruptPressure(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kInterruptPressureStates)};
  // Entering and leaving a handler (often through the hypervisor) and refilling the caches cost a thread
  // about as much again; that is accounted as its CPU time, or that of the own process that the step waits
  // for.
  constexpr std::array kLengthened = {State::kCpu, State::kLoader};
  finding.explained_ns += std::min(ExcessOf(situation, kLengthened), finding.explained_ns);
  for (const auto& [actor, ns] : LargestRises(situation.cpu_before, situation.cpu_during, false))
    if (actor.name.starts_with("ksoftirqd/")) finding.explained_ns += ns;
  finding.sentence =
      fmt::format("interrupts took {} of each step", Time(situation.during[State::kInterrupted]));
  return finding;
}

}  // namespace

const Cause& InterruptPressure() {
  static constexpr Cause kCause{
      CauseId::kInterruptPressure,
      "interrupt_pressure",
      "Interrupt pressure",
      "Move the network card's interrupts to other CPUs (irqbalance, smp_affinity).",
      kInterruptPressureStates,
      {},
      {},
      EvaluateInterruptPressure};
  return kCause;
}

}  // namespace gpusonde::diagnose
