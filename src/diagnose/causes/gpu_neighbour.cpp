// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Another process uses the same GPU: kernels of two processes take turns.
constexpr std::array kStatesOf = {State::kGpuQueue, State::kGpuRun};
constexpr std::array kCases = {
    Case{model::Metric::kGpuClockSm, Case::Expect::kStays, 100, 0.5, "the SM clock is what it was"},
};

std::optional<Finding> Look(const Situation& situation) {
  const std::string* who = nullptr;
  double most = 5;  // % of the GPU's time
  for (const auto& [name, change] : situation.neighbours)
    if (change.rise() > most) {
      most = change.rise();
      who = &name;
    }
  if (who == nullptr) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf), .nats = 1.5};
  finding.sentence = fmt::format("{} took {:.0f} % of the GPU's time more than before", *who, most);
  return finding;
}

}  // namespace

const Cause& GpuNeighbour() {
  static constexpr Cause kCause{"gpu_neighbour", "GPU neighbour", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
