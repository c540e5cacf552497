// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyze/timeline/rank_timeline.h"
#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

// What one rank did over time.
struct RankResult {
  RankKey key;
  RankTimeline timeline;
  QueueLength queue;
};

// Goes through the events of a finished state in order of time, by several threads, each a process at a time.
// The results are in order of process and device. Errors: those of temporary files.
Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, int threads);

}  // namespace gpusonde::analyze
