// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The program's own threads take the CPUs from each other: more of them than CPUs.
constexpr std::array kStatesOf = {State::kRunQueueOwn};
constexpr std::array kCases = {
    Case{model::Metric::kHostPressureCpu, Case::Expect::kRises, 0.05, 0.5,
         "somebody waited for a CPU more than before"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("what feeds the GPU waited for a CPU {}", ShareOf(situation, State::kRunQueueOwn));
  const auto who = WhoRose(situation.cpu_before, situation.cpu_during, true);
  if (!who.empty()) finding.sentence += "; " + TakenBy(who, "the program's own ");
  // Where the same work is done in each step, it isn't the program that changed: it has fewer CPUs.
  if (situation.own_cpu.known()) {
    const double more_ns = (*situation.own_cpu.during * situation.during.total() -
                            *situation.own_cpu.before * situation.before.total()) /
                           kNanosPerSecond;
    if (more_ns < finding.explained_ns / 2) {
      finding.nats -= 5;
      finding.sentence += ", which run no more in each step than before";
    }
  }
  return finding;
}

}  // namespace

const Cause& CpuContentionOwn() {
  static constexpr Cause kCause{"cpu_contention_own", "CPU contention within the program", kStatesOf, kCases,
                                Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
