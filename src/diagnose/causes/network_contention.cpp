// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Packets of the job wait for a network device that others keep busy, or that is too slow for what it sends
// itself.
constexpr std::array kStatesOf = {State::kNetworkQueue};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("packets waited for a network device {}", ShareOf(situation, State::kNetworkQueue));
  constexpr double kNoticeable = 1e6;  // bytes a second
  const auto who = WhoRose(situation.network_before, situation.network_during, false);
  const auto own = WhoRose(situation.network_before, situation.network_during, true);
  if (!who.empty() && who.front().second > kNoticeable) {
    finding.nats += 1;
    finding.sentence += fmt::format("; {} sent {:.1f} MB/s more than before through it",
                                    NameParty(who.front().first), who.front().second / 1e6);
  } else if (!own.empty() && own.front().second > kNoticeable) {
    finding.sentence += fmt::format("; the job's own {} sent {:.1f} MB/s more than before through it",
                                    own.front().first.name, own.front().second / 1e6);
  } else {
    finding.nats -= 0.5;
    finding.sentence += "; whose packets kept it busy was not seen";
  }
  return finding;
}

}  // namespace

const Cause& NetworkContention() {
  static constexpr Cause kCause{"network_contention", "Network contention", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
