// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/selection.h"
#include "store/rollups/gpu_windows.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

// GPU work summed by who ran it, for queries. One statement for all processes: to plan one takes as long as
// to run it over seconds, and eight ranks have eight processes.
namespace gpusonde::store {

// Rows of work that are held in memory at a time, by the database and by us: 56 MB.
inline constexpr int64_t kWorkRowsAtOnce = 1'000'000;

// The selection's time from 1970 on. Errors: those of Store::Query.
Result<TimeRange> WorkRange(Store& store, const model::Selection& selection);

// A statement with rows of device and process: who ran work in the range, which isn't empty.
SqlPart WorkOwners(Store& store, const model::Selection& selection, const TimeRange& range);

// When work of each process would have been recorded, within the range: sorted and disjoint. Processes that
// weren't profiled then are absent. Errors: those of Store::Query.
Result<std::map<Id128, std::vector<TimeRange>>> ReadObservedTimesByProcess(Store& store,
                                                                           const model::Selection& selection,
                                                                           const TimeRange& range);

// What a process started on a stream.
struct WorkSum {
  Id128 process;
  Id128 device;
  int64_t stream = 0;
  int64_t kernels = 0;
  int64_t busy_ns = 0;  // sum of durations, of copies and sets, too
};
// Calls on_sum for the work of the selection that starts in the range; several times for a process and stream
// whose work is partly summed. Errors: those of Store::Query.
Status ForEachWorkSum(Store& store, const model::Selection& selection, const TimeRange& range,
                      const std::function<void(const WorkSum&)>& on_sum);

// When the work of each process ran on each device within the slice, which is one of ReadSlices. Errors:
// those of Store::Query.
Result<std::map<Id128, DeviceTimes>> ReadProcessTimes(Store& store, const model::Selection& selection,
                                                      const TimeRange& slice);

}  // namespace gpusonde::store
