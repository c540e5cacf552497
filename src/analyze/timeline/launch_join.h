// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

// From the first start to the last end.
struct Extent {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();

  void Cover(int64_t start_ns, int64_t end_ns) {
    first_ns = std::min(first_ns, start_ns);
    last_ns = std::max(last_ns, end_ns);
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(first_ns);
    archive(last_ns);
  }
};

// The GPU events of a process with the calls that launched them, by start, and when launches joined the
// queues.
struct Launches {
  explicit Launches(const std::shared_ptr<TemporaryFile>& file) : events(file), queue(file) {}
  SortedRuns<LaunchedRecord, ByStart> events;
  SortedRuns<QueueEntry, ByTime> queue;
  std::map<uint16_t, Extent> extents;  // by the rank's number
};

// A call joins by correlation; of several (ids are 32-bit and wrap), it is the last one that began before the
// event, or else the first. Calls more than 60 s away belong to another round of ids.
//
// Memory is bounded: both sides lie in sorted runs, and so do the results. Errors: those of temporary files.
Result<Launches> JoinLaunches(const ProcessRecords& process);

}  // namespace gpusonde::analyze
