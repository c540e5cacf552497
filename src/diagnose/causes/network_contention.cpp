// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job queue at a network device that others keep busy, or that is too slow for the job's own
// traffic.
constexpr std::array kStatesOf = {State::kNetworkQueue};

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence = fmt::format("the step waited for packets in a network device's queue {}",
                                 ShareOf(situation, State::kNetworkQueue));
  constexpr double kNoticeable = 1e6;  // bytes per second
  const auto who = LargestRises(situation.network_before, situation.network_during, false);
  const auto own = LargestRises(situation.network_before, situation.network_during, true);
  if (!who.empty() && who.front().second > kNoticeable) {
    finding.nats += 1;
    finding.sentence += fmt::format("; {} sent {:.1f} MB/s more through it than before",
                                    NameActor(who.front().first), who.front().second / 1e6);
  } else if (!own.empty() && own.front().second > kNoticeable) {
    finding.sentence += fmt::format("; the job's own {} sent {:.1f} MB/s more through it than before",
                                    own.front().first.name, own.front().second / 1e6);
  } else {
    finding.nats -= 0.5;
    finding.sentence += "; it is unknown which process kept the device busy";
  }
  return finding;
}

}  // namespace

const Cause& NetworkContention() {
  static constexpr Cause kCause{"network_contention", "Network contention", kStatesOf, {}, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
