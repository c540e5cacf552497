// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The GPU takes longer for the same kernels because its clocks are lower. A GPU that has to wait for its host
// lowers them too: then no kernel takes longer, and what has grown is other states.
constexpr std::array kStatesOf = {State::kGpuRun};
constexpr std::array kCases = {
    Case{model::Metric::kGpuClockSm, Case::Expect::kFalls, 0.1, 2, "the SM clock fell"},
    Case{model::Metric::kGpuThrottleReasons, Case::Expect::kRises, 0.2, 1.5,
         "the driver gives a reason why it lowers the clocks"},
};

std::optional<Finding> Look(const Situation& situation) {
  const Change clock = situation.Of(model::Metric::kGpuClockSm);
  const Change reasons = situation.Of(model::Metric::kGpuThrottleReasons);
  const bool fell = clock.known() && *clock.during < 0.95 * *clock.before;
  if (!fell && reasons.rise() < 0.1) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("the step waited for the GPU's kernels {}", ShareOf(situation, State::kGpuRun));
  if (fell)
    finding.sentence +=
        fmt::format("; its SM clock fell from {:.0f} to {:.0f} MHz", *clock.before, *clock.during);
  const Change heat = situation.Of(model::Metric::kGpuTemperature);
  if (heat.known()) finding.sentence += fmt::format(" at {:.0f} °C", *heat.during);
  return finding;
}

}  // namespace

const Cause& GpuClocks() {
  static constexpr Cause kCause{"gpu_clocks", "GPU clock throttling", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
