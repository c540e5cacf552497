// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// While the hypervisor runs other guests, threads seem to run: their CPU time grows by the stolen time at
// most. The account can't separate the two, so steal only bounds how much of the CPU time it explains.
constexpr std::array kHostStealStates = {State::kCpu, State::kLoader};

std::optional<Finding> EvaluateHostSteal(const Situation& situation) {
  const Change steal = situation.Of(model::Metric::kHostSteal);
  if (steal.rise() < kWeights.host_steal.min_steal) return std::nullopt;
  Finding finding{.nats = kWeights.host_steal.steal};
  finding.explained_ns =
      std::min(ExcessOf(situation, kHostStealStates), steal.rise() * situation.during.total());
  finding.sentence = fmt::format("the hypervisor stole {:.0f} % of one CPU's time ({:.0f} % before)",
                                 100 * *steal.during, 100 * *steal.before);
  return finding;
}

}  // namespace

const Cause& HostSteal() {
  static constexpr Cause kCause{CauseId::kHostSteal,
                                "host_steal",
                                "Time stolen by the hypervisor",
                                "Move the virtual machine to a less busy host.",
                                kHostStealStates,
                                {},
                                {},
                                EvaluateHostSteal};
  return kCause;
}

}  // namespace gpusonde::diagnose
