// SPDX-License-Identifier: Apache-2.0
#include "server/total_variances.h"

#include <algorithm>

namespace gpusonde::server {

std::vector<double> TotalVariances(const model::Profile& profile, std::span<const int32_t> parents,
                                   std::span<const int32_t> ends) {
  std::vector<const model::Profile::Sample*> samples;  // group by group
  for (const model::Profile::Sample& sample : profile.samples)
    if (sample.launch_group >= 0 && sample.stack >= 0) samples.push_back(&sample);
  std::ranges::stable_sort(samples, {}, &model::Profile::Sample::launch_group);

  std::vector<double> variances_ns2(parents.size(), 0);
  std::vector<model::LaunchSums> below(parents.size());  // of the group in hand; zero elsewhere
  std::vector<size_t> touched;
  for (size_t i = 0; i < samples.size(); ++i) {
    const model::LaunchSums& launches = samples[i]->launches;
    for (int32_t node = ends[static_cast<size_t>(samples[i]->stack)]; node >= 0;
         node = parents[static_cast<size_t>(node)]) {
      const auto at = static_cast<size_t>(node);
      if (below[at].time_ns == 0 && below[at].variance_ns2 == 0) touched.push_back(at);
      below[at] += launches;
    }
    if (i + 1 < samples.size() && samples[i + 1]->launch_group == samples[i]->launch_group) continue;
    const auto& group = profile.launch_groups[static_cast<size_t>(samples[i]->launch_group)];
    for (const size_t node : touched) {
      variances_ns2[node] += model::ShareVariance(group.total_ns, below[node], group.launches);
      below[node] = {};
    }
    touched.clear();
  }
  return variances_ns2;
}

}  // namespace gpusonde::server
