// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kPredicts = {CauseId::kBlockIo, CauseId::kIoThrottling};

std::optional<Sign> Evaluate(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return EvaluatePressure(host, model::Metric::kHostPressureIo, now_ns, "I/O");
}

}  // namespace

const Indicator& IoPressureIndicator() {
  static constexpr Indicator kIndicator{"io_pressure", kPredicts, false, Evaluate};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
