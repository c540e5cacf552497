// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The program has more runnable threads than CPUs.
constexpr std::array kCpuContentionOwnStates = {State::kRunQueueOwn};
constexpr std::array kCpuContentionOwnExpectations = {
    Expectation{model::Metric::kHostPressureCpu, Expectation::Direction::kRises, &kWeights.pressure.cpu_rise,
                &kWeights.pressure.cpu, "tasks waited for a CPU longer than before"},
};

std::optional<Finding> EvaluateCpuContentionOwn(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kCpuContentionOwnStates)};
  finding.sentence = fmt::format("the step waited for a CPU {}", ShareOf(situation, State::kRunQueueOwn));
  const auto who = LargestRises(situation.cpu_before, situation.cpu_during, true);
  if (!who.empty()) finding.sentence += "; " + TakenBy(who, "the program's own ");
  // If its threads use no more CPU time per step, the program hasn't changed: it has fewer CPUs.
  if (situation.own_cpu.known()) {
    const double more_ns = (*situation.own_cpu.during * situation.during.total() -
                            *situation.own_cpu.before * situation.before.total()) /
                           kNanosPerSecond;
    if (more_ns < kWeights.cpu_contention_own.min_more_cpu * finding.explained_ns) {
      finding.nats -= kWeights.cpu_contention_own.same_cpu;
      finding.sentence += ", which use no more CPU time per step than before";
    }
  }
  return finding;
}

}  // namespace

const Cause& CpuContentionOwn() {
  static constexpr Cause kCause{
      CauseId::kCpuContentionOwn,
      "cpu_contention_own",
      "CPU contention within the program",
      "Start fewer threads or processes than there are CPUs, or allow it more CPUs.",
      kCpuContentionOwnStates,
      kCpuContentionOwnExpectations,
      {},
      EvaluateCpuContentionOwn};
  return kCause;
}

}  // namespace gpusonde::diagnose
