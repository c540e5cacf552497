// SPDX-License-Identifier: Apache-2.0
#include "server/total_variances.h"

#include <algorithm>

namespace gpusonde::server {

namespace {

std::vector<double> OfWaits(const model::Profile& profile, std::span<const int32_t> parents,
                            std::span<const int32_t> ends) {
  std::vector<double> variances_ns2(parents.size(), 0);
  for (size_t i = 0; i < profile.samples.size(); ++i)
    if (ends[i] >= 0) variances_ns2[static_cast<size_t>(ends[i])] += profile.samples[i].variance_ns2;
  for (size_t node = parents.size(); node-- > 0;)
    if (parents[node] >= 0) variances_ns2[static_cast<size_t>(parents[node])] += variances_ns2[node];
  return variances_ns2;
}

std::vector<double> OfGpuTime(const model::Profile& profile, std::span<const int32_t> parents,
                              std::span<const int32_t> ends) {
  std::vector<size_t> samples;  // group by group
  for (size_t i = 0; i < profile.samples.size(); ++i)
    if (profile.samples[i].launch_group >= 0 && profile.samples[i].stack >= 0) samples.push_back(i);
  const auto group_of = [&profile](size_t i) { return profile.samples[i].launch_group; };
  std::ranges::stable_sort(samples, {}, group_of);

  std::vector<double> variances_ns2(parents.size(), 0);
  std::vector<model::LaunchSums> below(parents.size());  // of the group in hand; zero elsewhere
  std::vector<size_t> touched;
  for (size_t i = 0; i < samples.size(); ++i) {
    const model::LaunchSums& launches = profile.samples[samples[i]].launches;
    for (int32_t node = ends[samples[i]]; node >= 0; node = parents[static_cast<size_t>(node)]) {
      const auto at = static_cast<size_t>(node);
      if (below[at].time_ns == 0 && below[at].variance_ns2 == 0) touched.push_back(at);
      below[at] += launches;
    }
    if (i + 1 < samples.size() && group_of(samples[i + 1]) == group_of(samples[i])) continue;
    const auto& group = profile.launch_groups[static_cast<size_t>(group_of(samples[i]))];
    for (const size_t node : touched) {
      variances_ns2[node] += model::ShareVariance(group.total_ns, below[node], group.launches);
      below[node] = {};
    }
    touched.clear();
  }
  return variances_ns2;
}

}  // namespace

std::vector<double> TotalVariances(const model::Profile& profile, std::span<const int32_t> parents,
                                   std::span<const int32_t> ends) {
  return profile.type == model::ProfileType::kOffCpu ? OfWaits(profile, parents, ends)
                                                     : OfGpuTime(profile, parents, ends);
}

}  // namespace gpusonde::server
