// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/full_queue.h"

#include <algorithm>

namespace gpusonde::analyze {

FullQueueFollower::Stream* FullQueueFollower::Find(uint32_t stream) {
  if (streams_.size() == kMaxStreams && !streams_.contains(stream)) return nullptr;
  return &streams_[stream];
}

void FullQueueFollower::AddBlocked(const Gap& call) {
  ++result_.count;
  result_.blocked_ns += call.end_ns - call.begin_ns;
  const auto place = std::ranges::upper_bound(result_.longest, call.Key(), {}, &Gap::Key);
  result_.longest.insert(place, call);
  if (result_.longest.size() > FullQueue::kLongest) result_.longest.pop_back();
}

FullQueue FullQueueFollower::Finish() && { return std::move(result_); }

}  // namespace gpusonde::analyze
