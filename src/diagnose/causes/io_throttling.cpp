// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or an ancestor, has reached its I/O limit although the disk could do more.
constexpr std::array kIoThrottlingStates = {State::kIoThrottled};
constexpr std::array kIoThrottlingExpectations = {
    Expectation{model::Metric::kCgroupIoThrottled, Expectation::Direction::kRises,
                &kWeights.io_throttling.throttled_rise, &kWeights.io_throttling.throttled,
                "its cgroup's I/O alone takes this long at the limit"},
};

constexpr std::array kIoThrottlingSupersedes = {Superseded{
    CauseId::kBlockIo,
    // At an I/O limit, waiting for the disk is mostly waiting for the limit.
    [](const Situation& situation) -> double {
      const double blocked_ns =
          std::max(situation.excess(State::kBlockedIo) + situation.excess(State::kBlocked), 0.0);
      return situation.excess(State::kIoThrottled) > blocked_ns ? kWeights.io_throttling.over_block_io : 0.0;
    }}};

std::optional<Finding> EvaluateIoThrottling(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kIoThrottlingStates)};
  finding.sentence = fmt::format("the step waited for disks at its cgroup's I/O limit {}",
                                 ShareOf(situation, State::kIoThrottled));
  return finding;
}

}  // namespace

const Cause& IoThrottling() {
  static constexpr Cause kCause{CauseId::kIoThrottling,  "io_throttling",
                                "I/O throttling",        "Raise its cgroup's limit (io.max).",
                                kIoThrottlingStates,     kIoThrottlingExpectations,
                                kIoThrottlingSupersedes, EvaluateIoThrottling};
  return kCause;
}

}  // namespace gpusonde::diagnose
