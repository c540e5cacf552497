// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or an ancestor, has used up its CPU quota of the period.
constexpr std::array kStatesOf = {State::kThrottled};
constexpr std::array kExpectations = {
    Expectation{model::Metric::kCgroupThrottled, Expectation::Direction::kRises,
                kWeights.cpu_quota.throttled_rise, kWeights.cpu_quota.throttled,
                "its cgroup was throttled more than before"},
};

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("its cgroup's CPU quota throttled the step {}", ShareOf(situation, State::kThrottled));
  return finding;
}

}  // namespace

const Cause& CpuQuota() {
  static constexpr Cause kCause{CauseId::kCpuQuota, "cpu_quota", "CPU quota", kStatesOf,
                                kExpectations,      {},          Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
