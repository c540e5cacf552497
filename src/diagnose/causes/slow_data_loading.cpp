// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The launch thread waits for the program's own processes or threads while those run: they do more, or on a
// slower CPU. If they wait for a CPU, a disk or a quota themselves, that is in other states.
constexpr std::array kStatesOf = {State::kLoader};
// Growth of the loaders' CPU time that counts as none and in full, and the nats against this cause for none.
constexpr double kNoGrowth = 0.1, kFullGrowth = 0.3, kSlowerNats = 1.5;

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("the launch thread waited for the program's own processes, which were running, {}",
                  ShareOf(situation, State::kLoader));
  // Loaders that hardly run longer than before aren't the reason: the path waits for them now because
  // something else has changed. A slower CPU slows loaders as well.
  double against = IsUniformlySlower(situation) ? kSlowerNats : 0;
  if (situation.loader_cpu_before > 0) {
    const double growth = situation.loader_cpu_during / situation.loader_cpu_before - 1;
    against = std::max(
        against, kSlowerNats * std::clamp((kFullGrowth - growth) / (kFullGrowth - kNoGrowth), 0.0, 1.0));
  }
  finding.nats -= against;
  // The reclaim is done by the kernel within the loaders' CPU time.
  if (IsReclaimingMemory(situation)) finding.nats -= 1.5;
  const double waited_ns = situation.excess(State::kRunQueue);
  if (waited_ns < situation.excess_ns() / 20)
    finding.sentence += "; not CPU contention: run-queue delay unchanged";
  return finding;
}

}  // namespace

const Cause& SlowDataLoading() {
  static constexpr Cause kCause{
      "slow_data_loading", "Slow data loading inside the program", kStatesOf, {}, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
