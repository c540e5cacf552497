// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kMemoryPressurePredicts = {CauseId::kMemoryPressure, CauseId::kBlockIo};

std::optional<Sign> EvaluateMemoryPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return EvaluatePressure(host, model::Metric::kHostPressureMemory, now_ns, "memory");
}

}  // namespace

const Indicator& MemoryPressureIndicator() {
  static constexpr Indicator kIndicator{"memory_pressure", kMemoryPressurePredicts, false,
                                        EvaluateMemoryPressure};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
