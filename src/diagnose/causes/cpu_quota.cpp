// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The cgroup, or an ancestor, has used up its CPU quota of the period.
constexpr std::array kCpuQuotaStates = {State::kThrottled};
constexpr std::array kCpuQuotaExpectations = {
    Expectation{model::Metric::kCgroupThrottled, Expectation::Direction::kRises,
                &kWeights.cpu_quota.throttled_rise, &kWeights.cpu_quota.throttled,
                "its cgroup was throttled more than before"},
};

std::optional<Finding> EvaluateCpuQuota(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kCpuQuotaStates)};
  finding.sentence =
      fmt::format("its cgroup's CPU quota throttled the step {}", ShareOf(situation, State::kThrottled));
  return finding;
}

}  // namespace

const Cause& CpuQuota() {
  static constexpr Cause kCause{
      CauseId::kCpuQuota, "cpu_quota",           "CPU quota", "Raise its cgroup's quota (cpu.max).",
      kCpuQuotaStates,    kCpuQuotaExpectations, {},          EvaluateCpuQuota};
  return kCause;
}

}  // namespace gpusonde::diagnose
