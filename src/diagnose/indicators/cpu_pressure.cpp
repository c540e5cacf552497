// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kPredicts = {CauseId::kCpuContention, CauseId::kCpuContentionOwn, CauseId::kCpuQuota};

std::optional<Sign> Evaluate(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return EvaluatePressure(host, model::Metric::kHostPressureCpu, now_ns, "CPU");
}

}  // namespace

const Indicator& CpuPressureIndicator() {
  static constexpr Indicator kIndicator{"cpu_pressure", kPredicts, false, Evaluate};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
