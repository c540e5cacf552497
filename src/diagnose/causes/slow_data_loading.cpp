// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The step waits for the program's own processes or threads, and those run: they have more to do, or the CPU
// does it slower. That others take the CPU, the disk or the quota is in other states.
constexpr std::array kStatesOf = {State::kLoader};
// How much longer the loaders run.
constexpr double kHardly = 0.1, kMore = 0.3, kSlowerNats = 1.5;

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("the thread that feeds the GPU waited for the program's own processes, which ran, {}",
                  ShareOf(situation, State::kLoader));
  // What hardly runs longer than before is nothing new: it came to be waited for since something else has
  // changed. And a CPU that has become slower slows loaders too.
  double against = SlowerAllOver(situation) ? kSlowerNats : 0;
  if (situation.loader_cpu_before > 0) {
    const double growth = situation.loader_cpu_during / situation.loader_cpu_before - 1;
    against = std::max(against, kSlowerNats * std::clamp((kMore - growth) / (kMore - kHardly), 0.0, 1.0));
  }
  finding.nats -= against;
  // By the kernel, in the loaders' time.
  if (ReadsAgain(situation)) finding.nats -= 1.5;
  const double waited_ns = situation.excess(State::kRunQueue);
  if (waited_ns < situation.excess_ns() / 20)
    finding.sentence += "; not CPU contention: run-queue delay unchanged";
  return finding;
}

}  // namespace

const Cause& SlowDataLoading() {
  static constexpr Cause kCause{
      "slow_data_loading", "Slow data loading inside the program", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
