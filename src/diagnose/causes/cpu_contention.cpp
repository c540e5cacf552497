// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Others have the CPUs that the step needs. Quota and interrupts are states of their own, so that what is
// left of the run queue's delay is this.
constexpr std::array kStatesOf = {State::kRunQueue};
constexpr std::array kCases = {
    Case{model::Metric::kHostPressureCpu, Case::Expect::kRises, 0.05, 0.5,
         "somebody waited for a CPU more than before"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("what feeds the GPU waited for a CPU {}", ShareOf(situation, State::kRunQueue));
  const auto who = WhoRose(situation.cpu_before, situation.cpu_during, false);
  if (!who.empty()) finding.sentence += "; " + TakenBy(who);
  // The more of it has names, the surer it is that others had the CPUs.
  double named_ns = 0;
  for (const auto& [party, ns] : who) named_ns += ns;
  if (finding.explained_ns > 0) finding.nats += std::min(named_ns / finding.explained_ns, 1.0);
  return finding;
}

}  // namespace

const Cause& CpuContention() {
  static constexpr Cause kCause{"cpu_contention", "CPU contention", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
