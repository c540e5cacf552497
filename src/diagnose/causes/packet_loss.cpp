// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job are lost on their way and sent again, which takes a round trip at best and 200 ms or
// more where nothing follows that would show the loss (RFC 6298, Linux' TCP_RTO_MIN).
constexpr std::array kStatesOf = {State::kNetwork};

std::optional<Finding> Look(const Situation& situation) {
  // Segments a second: where everything is lost the pauses double each time, and there are few of them.
  constexpr double kNoticeable = 0.3;
  constexpr double kDearest = 1e9;  // ns that one costs; more is a network that is gone, or something else
  const double during = situation.retransmits.during.value_or(0);
  const double rise = during - situation.retransmits.before.value_or(0);
  if (rise < kNoticeable || rise < during / 3) return std::nullopt;
  const double per_step = rise * situation.during.total() / 1e9;
  Finding finding{.explained_ns = std::min(ExcessOf(situation, kStatesOf), per_step * kDearest), .nats = 1.5};
  finding.sentence =
      fmt::format("the step waited for packets {}; {:.1f} a second had to be sent again ({:.1f} before)",
                  ShareOf(situation, State::kNetwork), during, situation.retransmits.before.value_or(0));
  return finding;
}

}  // namespace

const Cause& PacketLoss() {
  static constexpr Cause kCause{"packet_loss", "Packet loss", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
