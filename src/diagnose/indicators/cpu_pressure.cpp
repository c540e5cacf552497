// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kCpuPressurePredicts = {CauseId::kCpuContention, CauseId::kCpuContentionOwn,
                                             CauseId::kCpuQuota};

std::optional<Sign> EvaluateCpuPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return EvaluatePressure(host, model::Metric::kHostPressureCpu, now_ns, "CPU");
}

}  // namespace

const Indicator& CpuPressureIndicator() {
  static constexpr Indicator kIndicator{"cpu_pressure", kCpuPressurePredicts, false, EvaluateCpuPressure};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
