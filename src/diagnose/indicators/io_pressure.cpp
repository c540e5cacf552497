// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kIoPressurePredicts = {CauseId::kBlockIo, CauseId::kIoThrottling};

std::optional<Sign> EvaluateIoPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return EvaluatePressure(host, model::Metric::kHostPressureIo, now_ns, "I/O");
}

}  // namespace

const Indicator& IoPressureIndicator() {
  static constexpr Indicator kIndicator{"io_pressure", kIoPressurePredicts, false, EvaluateIoPressure};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
