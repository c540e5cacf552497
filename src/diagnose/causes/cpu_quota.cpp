// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <string>

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

// " of 0.4 CPUs (2 CPUs before)"; empty if the quota is unknown. Without a quota for most of the time before
// the incident, the mean is lower than what it fell to.
std::string QuotaText(const Change& quota) {
  constexpr double kAlike = 0.1;
  if (!quota.during.has_value()) return "";
  const double change = quota.before.value_or(0) / *quota.during - 1;
  return fmt::format(" of {}{}", Cpus(*quota.during),
                     change > kAlike    ? fmt::format(" ({} before)", Cpus(*quota.before))
                     : change < -kAlike ? " (none before)"
                                        : "");
}

std::optional<Finding> EvaluateCpuQuota(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kCpuQuotaStates)};
  finding.sentence = fmt::format("its cgroup's CPU quota{} throttled the step {}",
                                 QuotaText(situation.Of(model::Metric::kCgroupCpuQuota)),
                                 ShareOf(situation, State::kThrottled));
  if (!situation.cgroup.empty())
    finding.sentence += fmt::format("; the cgroup is {}, or one above it", situation.cgroup);
  return finding;
}

}  // namespace

const Cause& CpuQuota() {
  static constexpr Cause kCause{
      CauseId::kCpuQuota,
      "cpu_quota",
      "CPU quota",
      "Raise its cgroup's quota (cpu.max; in Kubernetes its container's CPU limit).",
      kCpuQuotaStates,
      kCpuQuotaExpectations,
      {},
      EvaluateCpuQuota};
  return kCause;
}

}  // namespace gpusonde::diagnose
