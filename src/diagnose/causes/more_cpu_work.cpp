// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The launch thread runs so much longer per step that no neighbour's use of memory or caches explains it: the
// program does more. Smaller growth is slow_cpu's.
constexpr std::array kMoreCpuWorkStates = {State::kCpu};

std::optional<Finding> EvaluateMoreCpuWork(const Situation& situation) {
  const double before_ns = situation.before[State::kCpu];
  const double during_ns = situation.during[State::kCpu] - StolenNs(situation);
  if (before_ns <= 0 || during_ns <= before_ns) return std::nullopt;
  const auto& weights = kWeights.more_cpu_work;
  const double growth = during_ns / before_ns;
  Finding finding{.explained_ns = during_ns - before_ns};
  finding.nats -=
      weights.little_growth *
      std::clamp((weights.full_growth - growth) / (weights.full_growth - weights.no_growth), 0.0, 1.0);
  if (MakesNoProgress(situation)) {
    if (!WorksWithoutGpu(situation)) return std::nullopt;
    finding.sentence = fmt::format(
        "the launch thread has computed for {:.0f} s, while the GPU had nothing to do: the program compiles, "
        "prepares data, or loops for ever",
        finding.explained_ns / 1e9);
    return finding;
  }
  finding.sentence = fmt::format(
      "the launch thread used {} of CPU time per step ({} before), {:.{}f}× as much: more than "
      "neighbours or clocks slow a CPU down",
      Time(during_ns), Time(before_ns), growth, growth < 100 ? 1 : 0);
  return finding;
}

}  // namespace

const Cause& MoreCpuWork() {
  static constexpr Cause kCause{
      CauseId::kMoreCpuWork,
      "more_cpu_work",
      "More CPU work in the program",
      "Compare its CPU flame graph during the incident with the one before: what has grown is the reason.",
      kMoreCpuWorkStates,
      {},
      {},
      EvaluateMoreCpuWork};
  return kCause;
}

}  // namespace gpusonde::diagnose
