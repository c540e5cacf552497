// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

using LaunchedRuns = SortedRuns<LaunchedRecord, ByStart>;
using QueueRuns = SortedRuns<QueueStep, ByTime>;

// The GPU events of a process with the calls that launched them, by start; and what they did to the queues of
// launched work. A call joins by correlation; of several (ids are 32-bit and wrap), it is the last one that
// began before the event, or else the first. Calls more than 60 s away belong to another round of ids.
//
// Memory is bounded: both sides lie in sorted runs, and so do the results.
Status JoinLaunches(const ProcessRecords& process, LaunchedRuns& launched, QueueRuns& queue);

}  // namespace gpusonde::analyze
