// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or an ancestor, has reached its I/O limit although the disk could do more.
constexpr std::array kStatesOf = {State::kIoThrottled};
constexpr std::array kExpectations = {
    Expectation{model::Metric::kCgroupIoThrottled, Expectation::Direction::kRises, 0.2, 1.5,
                "its cgroup's I/O alone takes this long at the limit"},
};

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // If most of the wait remains beyond the limit's part, contention is more likely.
  if (finding.explained_ns < situation.excess(State::kBlockedIo)) finding.nats -= 3;
  finding.sentence = fmt::format("the step waited for disks at its cgroup's I/O limit {}",
                                 ShareOf(situation, State::kIoThrottled));
  return finding;
}

}  // namespace

const Cause& IoThrottling() {
  static constexpr Cause kCause{"io_throttling", "I/O throttling", kStatesOf, kExpectations, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
