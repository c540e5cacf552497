// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Other programs use the CPUs that the step needs. Quota and interrupts have states of their own, so the rest
// of the run-queue delay is contention.
constexpr std::array kCpuContentionStates = {State::kRunQueue};
constexpr std::array kCpuContentionExpectations = {
    Expectation{model::Metric::kHostPressureCpu, Expectation::Direction::kRises, &kWeights.pressure.cpu_rise,
                &kWeights.pressure.cpu, "tasks waited for a CPU longer than before"},
};

std::optional<Finding> EvaluateCpuContention(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kCpuContentionStates)};
  finding.sentence = fmt::format("the step waited for a CPU {}", ShareOf(situation, State::kRunQueue));
  const auto who = LargestRises(situation.cpu_before, situation.cpu_during, false);
  if (const std::string text = TakenByOthers(who, finding.explained_ns); !text.empty())
    finding.sentence += "; " + text;
  finding.sentence += OwnPriority(situation.Of(model::Metric::kProcessNice).during);
  // The more of the delay is attributed to other programs, the more certain it is.
  double named_ns = 0;
  for (const auto& [actor, ns] : who) named_ns += ns;
  if (finding.explained_ns > 0)
    finding.nats += kWeights.cpu_contention.named * std::min(named_ns / finding.explained_ns, 1.0);
  return finding;
}

}  // namespace

const Cause& CpuContention() {
  static constexpr Cause kCause{CauseId::kCpuContention,
                                "cpu_contention",
                                "CPU contention",
                                "Move the others to other CPUs (cpuset), or lower their CPU weight.",
                                kCpuContentionStates,
                                kCpuContentionExpectations,
                                {},
                                EvaluateCpuContention};
  return kCause;
}

}  // namespace gpusonde::diagnose
