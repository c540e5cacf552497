// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/launch_pattern.h"

#include <algorithm>
#include <utility>

namespace gpusonde::analyze {

size_t LaunchFollower::FindPlace(uint32_t thread) {
  const auto found = std::ranges::find(result_.threads, thread, &ThreadLaunches::thread);
  const auto place = static_cast<size_t>(found - result_.threads.begin());
  if (found != result_.threads.end()) recent_ = place;
  return place;
}

void LaunchFollower::Launch(uint32_t thread, int64_t time_ns, int64_t waiting) {
  const size_t place = PlaceOf(thread);
  if (place == LaunchPattern::kMaxThreads) {
    ++result_.others;
    return;
  }
  if (place == result_.threads.size()) {
    result_.threads.push_back(
        {.thread = thread, .launches = 1, .first_ns = time_ns, .last_ns = time_ns, .waiting = waiting});
    gaps_before_ns_.push_back(kNoGap);
    return;
  }
  ThreadLaunches& launches = result_.threads[place];
  const int64_t gap_ns = time_ns - launches.last_ns;
  // Several events of one call, as of a graph; or times that the correction of a clock has swapped.
  if (gap_ns <= 0) return;
  const size_t bucket = ThreadLaunches::BucketOf(gap_ns);
  launches.gaps.Add(gap_ns);
  launches.gap_ns[bucket] += gap_ns;
  if (waiting == 0) ++launches.drained[bucket];
  ++launches.lone[ThreadLaunches::BucketOf(std::min(gap_ns, gaps_before_ns_[place]))];
  launches.longest_gap_ns = std::max(launches.longest_gap_ns, gap_ns);
  launches.last_ns = time_ns;
  launches.waiting += waiting;
  ++launches.launches;
  gaps_before_ns_[place] = gap_ns;
}

LaunchPattern LaunchFollower::Finish() && {
  for (size_t place = 0; place < result_.threads.size(); ++place)
    ++result_.threads[place].lone[ThreadLaunches::BucketOf(gaps_before_ns_[place])];
  return std::move(result_);
}

}  // namespace gpusonde::analyze
