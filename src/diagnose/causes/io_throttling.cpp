// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or one above it, may not read or write more: the disk would give more.
constexpr std::array kStatesOf = {State::kIoThrottled};
constexpr std::array kCases = {
    Case{model::Metric::kCgroupIoThrottled, Case::Expect::kRises, 0.2, 1.5,
         "what its cgroup read or wrote takes this time at its limit"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // At a limit that leaves time to wait for others, it is the others.
  if (finding.explained_ns < situation.excess(State::kBlockedIo)) finding.nats -= 3;
  finding.sentence = fmt::format("what feeds the GPU waited for a disk, at the I/O limit of its cgroup, {}",
                                 ShareOf(situation, State::kIoThrottled));
  return finding;
}

}  // namespace

const Cause& IoThrottling() {
  static constexpr Cause kCause{"io_throttling", "I/O throttling", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
