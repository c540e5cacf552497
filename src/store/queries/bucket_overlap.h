// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpusonde::store {

// Adds a share of a stretch of time to the buckets that it overlaps. Both ends are in units of a bucket since
// the first one's start; what lies outside of the buckets is left out.
inline void AddOverlap(double since, double until, double share, std::vector<double>& buckets) {
  const auto count = static_cast<double>(buckets.size());
  since = std::clamp(since, 0.0, count);
  until = std::clamp(until, 0.0, count);
  for (auto bucket = static_cast<size_t>(since); bucket < buckets.size(); ++bucket) {
    const auto start = static_cast<double>(bucket);
    if (start >= until) break;
    buckets[bucket] += share * (std::min(until, start + 1) - std::max(since, start));
  }
}

}  // namespace gpusonde::store
