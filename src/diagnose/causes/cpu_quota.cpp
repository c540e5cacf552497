// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or one above it, has used up what it may have in a period.
constexpr std::array kStatesOf = {State::kThrottled};
constexpr std::array kCases = {
    Case{model::Metric::kCgroupThrottled, Case::Expect::kRises, 0.02, 2,
         "its cgroup was throttled more than before"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  finding.sentence =
      fmt::format("its cgroup's CPU quota was used up {}", ShareOf(situation, State::kThrottled));
  return finding;
}

}  // namespace

const Cause& CpuQuota() {
  static constexpr Cause kCause{"cpu_quota", "CPU quota", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
