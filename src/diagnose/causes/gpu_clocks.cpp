// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The same kernels take longer because the GPU's clocks are lower. An idle GPU also lowers its clocks, but
// then other states have grown than the kernels'.
constexpr std::array kStatesOf = {State::kGpuRun};
constexpr std::array kExpectations = {
    Expectation{model::Metric::kGpuClockSm, Expectation::Direction::kFalls, 0.1, 2, "the SM clock fell"},
    Expectation{model::Metric::kGpuThrottleReasons, Expectation::Direction::kRises, 0.2, 1.5,
                "the driver reports a reason for lower clocks"},
};

std::optional<Finding> Evaluate(const Situation& situation) {
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
  static constexpr Cause kCause{"gpu_clocks", "GPU clock throttling", kStatesOf, kExpectations, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
