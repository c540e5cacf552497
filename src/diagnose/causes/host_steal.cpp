// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The hypervisor runs others while the guest's threads believe that they run: their time on the CPU grows, by
// what was stolen at most. The account can't tell the two apart, so steal lends its size, not the state.
constexpr std::array kStatesOf = {State::kCpu, State::kLoader};

std::optional<Finding> Look(const Situation& situation) {
  constexpr double kNoticeable = 0.02;  // of a CPU
  const Change steal = situation.Of(model::Metric::kHostSteal);
  if (steal.rise() < kNoticeable) return std::nullopt;
  Finding finding{.nats = 1};
  finding.explained_ns = std::min(ExcessOf(situation, kStatesOf), steal.rise() * situation.during.total());
  finding.sentence = fmt::format(
      "the hypervisor kept the machine's CPUs from working for {:.0f} % of a CPU's time ({:.0f} % before)",
      100 * *steal.during, 100 * *steal.before);
  return finding;
}

}  // namespace

const Cause& HostSteal() {
  static constexpr Cause kCause{"host_steal", "Time stolen by the hypervisor", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
