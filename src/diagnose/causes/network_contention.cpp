// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job queue at a network device that others keep busy, or that is too slow for the job's own
// traffic.
constexpr std::array kNetworkContentionStates = {State::kNetworkQueue};

constexpr std::array kNetworkContentionSupersedes = {Superseded{
    CauseId::kStraggler,
    [](const Situation& situation) { return OverStraggler(CauseId::kNetworkContention, situation); }}};

std::optional<Finding> EvaluateNetworkContention(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kNetworkContentionStates)};
  finding.sentence = fmt::format("the step waited for packets in a network device's queue {}",
                                 ShareOf(situation, State::kNetworkQueue));
  const auto who = LargestRises(situation.network_before, situation.network_during, false);
  const auto own = LargestRises(situation.network_before, situation.network_during, true);
  if (!who.empty() && who.front().second > kWeights.network.noticeable_bytes) {
    finding.nats += kWeights.network.sender_known;
    finding.sentence += fmt::format("; {} sent {:.1f} MB/s more through it than before",
                                    NameActor(who.front().first), who.front().second / 1e6);
  } else if (!own.empty() && own.front().second > kWeights.network.noticeable_bytes) {
    finding.sentence += fmt::format("; the job's own {} sent {:.1f} MB/s more through it than before",
                                    own.front().first.name, own.front().second / 1e6);
  } else {
    finding.nats -= kWeights.network.sender_unknown;
    finding.sentence += "; it is unknown which process kept the device busy";
  }
  return finding;
}

}  // namespace

const Cause& NetworkContention() {
  static constexpr Cause kCause{
      CauseId::kNetworkContention,  "network_contention",
      "Network contention",         "Limit the other sender (tc), or use another link.",
      kNetworkContentionStates,     {},
      kNetworkContentionSupersedes, EvaluateNetworkContention};
  return kCause;
}

}  // namespace gpusonde::diagnose
