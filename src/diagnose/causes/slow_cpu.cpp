// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The same work takes a CPU longer: somebody else fills the memory's bandwidth or the caches, or the clocks
// fell. The steps put the same work on the GPU, but what else the program does is not counted, so that this
// is never sure.
constexpr std::array kStatesOf = {State::kCpu, State::kLoader};

std::optional<Finding> Look(const Situation& situation) {
  constexpr double kMost = 3;  // times; neighbours make memory-bound programs 1.2 to 1.9 times slower
  if (!SlowerAllOver(situation) || situation.during[State::kCpu] > kMost * situation.before[State::kCpu])
    return std::nullopt;
  // Where loaders slow down at the same time, it is less likely that both have come to do more.
  const bool both = situation.loader_cpu_before > 0;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf), .nats = both ? -2.2 : -2.6};
  const double steal =
      std::max(0.0, situation.Of(model::Metric::kHostSteal).rise()) * situation.during.total();
  finding.explained_ns = std::max(0.0, finding.explained_ns - steal);
  finding.sentence = fmt::format(
      "the thread that feeds the GPU ran {} in each step, {} before, with the same work for the GPU{}: a CPU "
      "slowed "
      "by others' use of memory and caches or by its clocks, unless the program itself does more",
      Millis(situation.during[State::kCpu]), Millis(situation.before[State::kCpu]),
      both ? ", and its loaders longer too" : "");
  return finding;
}

}  // namespace

const Cause& SlowCpu() {
  static constexpr Cause kCause{"slow_cpu", "CPU slower at the same work", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
