// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Another process uses the same GPU: the kernels of the two are time-sliced.
constexpr std::array kGpuNeighbourStates = {State::kGpuQueue, State::kGpuRun};
constexpr std::array kGpuNeighbourExpectations = {
    Expectation{model::Metric::kGpuClockSm, Expectation::Direction::kStays,
                &kWeights.gpu_neighbour.clock_change, &kWeights.gpu_neighbour.same_clock,
                "the SM clock is unchanged"},
};

std::optional<Finding> EvaluateGpuNeighbour(const Situation& situation) {
  const std::string* who = nullptr;
  double most = kWeights.gpu_neighbour.min_rise;
  for (const auto& [name, change] : situation.neighbours)
    if (change.rise() > most) {
      most = change.rise();
      who = &name;
    }
  if (who == nullptr) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kGpuNeighbourStates),
                  .nats = kWeights.gpu_neighbour.utilization};
  finding.sentence = fmt::format("GPU utilization by {} rose by {:.0f} percentage points", *who, most);
  return finding;
}

}  // namespace

const Cause& GpuNeighbour() {
  static constexpr Cause kCause{CauseId::kGpuNeighbour,
                                "gpu_neighbour",
                                "GPU neighbour",
                                "Give each program a GPU or a MIG instance of its own.",
                                kGpuNeighbourStates,
                                kGpuNeighbourExpectations,
                                {},
                                EvaluateGpuNeighbour};
  return kCause;
}

}  // namespace gpusonde::diagnose
