// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The same kernels take longer because the GPU's clocks are lower. An idle GPU also lowers its clocks, but
// then other states have grown than the kernels'.
constexpr std::array kGpuClocksStates = {State::kGpuRun};
constexpr std::array kGpuClocksExpectations = {
    Expectation{model::Metric::kGpuClockSm, Expectation::Direction::kFalls, &kWeights.gpu_clocks.clock_fall,
                &kWeights.gpu_clocks.clock, "the SM clock fell"},
    Expectation{model::Metric::kGpuThrottleReasons, Expectation::Direction::kRises,
                &kWeights.gpu_clocks.reasons_rise, &kWeights.gpu_clocks.reasons,
                "the driver reports a reason for lower clocks"},
};

std::optional<Finding> EvaluateGpuClocks(const Situation& situation) {
  const Change clock = situation.Of(model::Metric::kGpuClockSm);
  const Change reasons = situation.Of(model::Metric::kGpuThrottleReasons);
  const bool fell = clock.known() && *clock.during < kWeights.gpu_clocks.fell * *clock.before;
  if (!fell && reasons.rise() < kWeights.gpu_clocks.min_reasons_rise) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kGpuClocksStates)};
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
  static constexpr Cause kCause{
      CauseId::kGpuClocks,
      "gpu_clocks",
      "GPU clock throttling",
      "Look at power limit, temperature and locked clocks (nvidia-smi -q -d PERFORMANCE).",
      kGpuClocksStates,
      kGpuClocksExpectations,
      {},
      EvaluateGpuClocks};
  return kCause;
}

}  // namespace gpusonde::diagnose
