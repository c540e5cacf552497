// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/loader_waits.h"

#include <algorithm>

namespace gpusonde::analyze {

LoaderFollower::LoaderFollower(const std::vector<TimeRange>& waits, int64_t gpu_ahead_ns) : waits_(waits) {
  for (TimeRange& wait : waits_) {
    wait.from_ns += gpu_ahead_ns;
    wait.to_ns += gpu_ahead_ns;
    ++result_.count;
    result_.total_ns += wait.to_ns - wait.from_ns;
  }
}

void LoaderFollower::AddGap(int64_t begin_ns, int64_t end_ns) {
  while (next_ < waits_.size() && waits_[next_].to_ns <= begin_ns) ++next_;
  for (size_t i = next_; i < waits_.size() && waits_[i].from_ns < end_ns; ++i) {
    const Gap idle{std::max(begin_ns, waits_[i].from_ns), std::min(end_ns, waits_[i].to_ns)};
    result_.idle_ns += idle.end_ns - idle.begin_ns;
    std::vector<Gap>& longest = result_.longest;
    longest.insert(std::ranges::upper_bound(longest, idle.Key(), {}, &Gap::Key), idle);
    if (longest.size() > LoaderWaits::kLongest) longest.pop_back();
  }
}

}  // namespace gpusonde::analyze
