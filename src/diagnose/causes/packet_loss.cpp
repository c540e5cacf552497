// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job are lost and retransmitted: after a round trip at best, and after 200 ms or more if no
// later packet reveals the loss (RFC 6298, Linux's TCP_RTO_MIN).
constexpr std::array kPacketLossStates = {State::kNetwork};

constexpr std::array kPacketLossSupersedes = {
    Superseded{CauseId::kStraggler,
               [](const Situation& situation) { return OverStraggler(CauseId::kPacketLoss, situation); }}};

// Compares what is lost per step. A step sends as many packets however long it takes, so that a job that
// waits for one retransmission after another retransmits less per second than one that goes on.
std::optional<Finding> EvaluatePacketLoss(const Situation& situation) {
  const double during = situation.retransmits.during.value_or(0);
  const double before = situation.retransmits.before.value_or(0);
  const double usual = before * situation.before.total() / situation.during.total();
  const double rise = during - usual;
  if (rise < kWeights.packet_loss.min_rise || rise < kWeights.packet_loss.min_rise_share * during)
    return std::nullopt;
  const double steps_per_s = 1e9 / situation.during.total();
  Finding finding{.explained_ns = std::min(ExcessOf(situation, kPacketLossStates),
                                           rise / steps_per_s * kWeights.packet_loss.max_per_retransmit),
                  .nats = kWeights.packet_loss.retransmits};
  finding.sentence = fmt::format(
      "the step waited for packets {}; {:.1f} TCP segments per 100 steps were retransmitted ({:.1f} before)",
      ShareOf(situation, State::kNetwork), 100 * during / steps_per_s, 100 * usual / steps_per_s);
  return finding;
}

}  // namespace

const Cause& PacketLoss() {
  static constexpr Cause kCause{
      CauseId::kPacketLoss,  "packet_loss",
      "Packet loss",         "Look at the link's errors and queues (ethtool -S, tc -s qdisc).",
      kPacketLossStates,     {},
      kPacketLossSupersedes, EvaluatePacketLoss};
  return kCause;
}

}  // namespace gpusonde::diagnose
