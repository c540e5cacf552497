// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job are lost and retransmitted: after a round trip at best, and after 200 ms or more if no
// later packet reveals the loss (RFC 6298, Linux's TCP_RTO_MIN).
constexpr std::array kStatesOf = {State::kNetwork};

std::optional<Finding> Evaluate(const Situation& situation) {
  // Segments per second. With total loss the timeout doubles each time, so retransmits are rare.
  constexpr double kNoticeable = 0.3;
  constexpr double kMaxNsPerRetransmit = 1e9;  // longer waits are an outage, or something else
  const double during = situation.retransmits.during.value_or(0);
  const double rise = during - situation.retransmits.before.value_or(0);
  if (rise < kNoticeable || rise < during / 3) return std::nullopt;
  const double per_step = rise * situation.during.total() / 1e9;
  Finding finding{.explained_ns = std::min(ExcessOf(situation, kStatesOf), per_step * kMaxNsPerRetransmit),
                  .nats = 1.5};
  finding.sentence = fmt::format(
      "the step waited for packets {}; {:.1f} TCP segments per second were retransmitted ({:.1f} before)",
      ShareOf(situation, State::kNetwork), during, situation.retransmits.before.value_or(0));
  return finding;
}

}  // namespace

const Cause& PacketLoss() {
  static constexpr Cause kCause{"packet_loss", "Packet loss", kStatesOf, {}, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
