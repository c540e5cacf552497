// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The launch thread waits for the program's own processes or threads while those run: they do more, or on a
// slower CPU. If they wait for a CPU, a disk or a quota themselves, that is in other states.
constexpr std::array kSlowDataLoadingStates = {State::kLoader};

// Threads of the same process need not load data: they may hold a lock, such as the Python interpreter's.
constexpr std::string_view kOwnThreadsTitle = "Waiting for other threads of the program";
constexpr std::string_view kOwnThreadsAdvice =
    "The CPU flame graph of those threads in this time shows what they do. In a Python program only one "
    "thread runs at a time; processes avoid that.";

// "the program's own processes (cc1, as)": up to three, that ran longer than before while it was waited for.
std::string OwnProcesses(const Situation& situation) {
  std::string names;
  int named = 0;
  const auto ran = LargestRises(situation.ran_before, situation.ran_during, true);
  for (const auto& [actor, ns] : ran) {
    if (ns < ran.front().second / 5 || ++named > 3) break;
    names += (names.empty() ? " (" : ", ") + actor.name;
  }
  return "the program's own processes" + names + (names.empty() ? "" : ")");
}

std::optional<Finding> EvaluateSlowDataLoading(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kSlowDataLoadingStates)};
  const bool own_threads = WaitsForOwnThreads(situation);
  if (own_threads) {
    finding.title = kOwnThreadsTitle;
    finding.advice = kOwnThreadsAdvice;
  }
  finding.sentence = fmt::format("the launch thread waited for {}, which were running, {}",
                                 own_threads ? "other threads of its process" : OwnProcesses(situation),
                                 ShareOf(situation, State::kLoader));
  // Loaders that hardly run longer than before aren't the reason: the path waits for them now because
  // something else has changed. (If everything is slower, slow_cpu supersedes this cause by as much already.)
  if (const HelperCpu cpu = HelperCpuOf(situation); cpu.before_ns > 0 && !IsUniformlySlower(situation)) {
    const auto& weights = kWeights.slow_data_loading;
    const double growth = cpu.during_ns / cpu.before_ns - 1;
    finding.nats -=
        weights.not_grown *
        std::clamp((weights.full_growth - growth) / (weights.full_growth - weights.no_growth), 0.0, 1.0);
  }
  const double waited_ns = situation.excess(State::kRunQueue);
  if (waited_ns < kWeights.slow_data_loading.min_run_queue * situation.excess_ns())
    finding.sentence += "; not CPU contention: run-queue delay unchanged";
  return finding;
}

}  // namespace

const Cause& SlowDataLoading() {
  static constexpr Cause kCause{
      CauseId::kSlowDataLoading,
      "slow_data_loading",
      "Slow data loading inside the program",
      "Use more loader workers, or do less work for each item, or do it earlier; in "
      "Python, use processes, as only one thread runs at a time.",
      kSlowDataLoadingStates,
      {},
      {},
      EvaluateSlowDataLoading};
  return kCause;
}

}  // namespace gpusonde::diagnose
