// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The driver reported an error (XID) while the step was slow or hung.

constexpr std::array kGpuFaultStates = {State::kGpuRun, State::kGpuCopy, State::kGpuQueue, State::kWaiting,
                                        State::kUnexplained};

std::optional<Finding> EvaluateGpuFault(const Situation& situation) {
  if (situation.xids.empty()) return std::nullopt;
  const int64_t code = situation.xids.front();
  Finding finding{.nats = kWeights.gpu_fault.xid};
  finding.explained_ns = ExcessOf(situation, kGpuFaultStates);
  const std::string_view meaning = model::XidMeaning(code);
  finding.sentence =
      fmt::format("the driver reported XID {}{}{}", code, meaning.empty() ? "" : ": ", meaning);
  return finding;
}

}  // namespace

const Cause& GpuFault() {
  static constexpr Cause kCause{CauseId::kGpuFault,
                                "gpu_fault",
                                "GPU fault",
                                "Look up the Xid in NVIDIA's documentation; replace the GPU if it recurs.",
                                kGpuFaultStates,
                                {},
                                {},
                                EvaluateGpuFault};
  return kCause;
}

}  // namespace gpusonde::diagnose
