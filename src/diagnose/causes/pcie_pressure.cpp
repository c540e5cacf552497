// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Copies take longer because the link has fewer lanes, a lower generation, or more traffic. (A program that
// copies more makes steps of another type.)
constexpr std::array kPciePressureStates = {State::kGpuCopy};

std::optional<Finding> EvaluatePciePressure(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kPciePressureStates)};
  const Change lanes = situation.Of(model::Metric::kGpuPcieWidth);
  const Change generation = situation.Of(model::Metric::kGpuPcieGeneration);
  const double traffic =
      situation.Of(model::Metric::kGpuPcieRx).rise() + situation.Of(model::Metric::kGpuPcieTx).rise();
  finding.sentence =
      fmt::format("the step waited for copies between host and GPU {}", ShareOf(situation, State::kGpuCopy));
  if (lanes.rise() < 0) {
    finding.nats = kWeights.pcie_pressure.fewer_lanes;
    finding.sentence +=
        fmt::format("; its link has {:.0f} lanes instead of {:.0f}", *lanes.during, *lanes.before);
  } else if (generation.rise() < -kWeights.pcie_pressure.generation_fall) {
    finding.nats = kWeights.pcie_pressure.lower_generation;
    finding.sentence += fmt::format("; its link runs at generation {:.0f} instead of {:.0f}",
                                    *generation.during, *generation.before);
  } else if (traffic > kWeights.pcie_pressure.more_traffic_bytes) {
    finding.nats = kWeights.pcie_pressure.more_traffic;
    finding.sentence += fmt::format("; the link carries {:.1f} GB/s more than before", traffic / 1e9);
  } else {
    return std::nullopt;
  }
  return finding;
}

}  // namespace

const Cause& PciePressure() {
  static constexpr Cause kCause{CauseId::kPciePressure,
                                "pcie_pressure",
                                "PCIe pressure",
                                "Check the seat and link of the card (lspci -vv, LnkSta).",
                                kPciePressureStates,
                                {},
                                {},
                                EvaluatePciePressure};
  return kCause;
}

}  // namespace gpusonde::diagnose
