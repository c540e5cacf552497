// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kPcieReplaysPredicts = {CauseId::kPciePressure};

std::optional<Sign> EvaluatePcieReplays(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return EvaluateErrors(host, model::Metric::kGpuPcieReplays, device, now_ns, "PCIe packets were replayed");
}

}  // namespace

const Indicator& PcieReplaysIndicator() {
  static constexpr Indicator kIndicator{"pcie_replays", kPcieReplaysPredicts, true, EvaluatePcieReplays};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
