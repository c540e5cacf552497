// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "diagnose/indicators/readings.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kEccErrorsPredicts = {CauseId::kGpuFault, CauseId::kHang};

std::optional<Sign> EvaluateEccErrors(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return EvaluateErrors(host, model::Metric::kGpuEccCorrected, device, now_ns,
                        "memory errors were corrected");
}

}  // namespace

const Indicator& EccErrorsIndicator() {
  static constexpr Indicator kIndicator{"ecc_errors", kEccErrorsPredicts, true, EvaluateEccErrors};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
