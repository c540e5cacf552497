// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

// Iterates over a process's GPU events with the calls that launched them, by correlation id; events and calls
// are sorted by it. Ids are 32-bit and wrap: of several calls with the id, the last one that began before the
// event is chosen, or else the first. Calls more than 60 s away belong to another wrap of ids.
class LaunchJoin {
 public:
  // `process` must outlive it. `gpu_ahead_ns` is added to the times of calls.
  LaunchJoin(const ProcessRecords& process, int64_t gpu_ahead_ns);

  // Returns false at the end and after a failure.
  bool Next(LaunchedRecord& record);
  // Calls that have the number of another thread's call within 60 s, of those that launched something: which
  // of them did is a guess.
  int64_t shared_numbers() const { return shared_numbers_; }
  // Why Next ended early, if it did: errors of temporary files.
  Status status() const;

 private:
  // The call of an event that starts at a time by the clock of the calls; null if unknown.
  const CallRecord* FindCall(uint32_t correlation, int64_t start_ns);

  Merged<GpuRecord, ByCorrelation, Renumbering> events_;
  Merged<CallRecord, ByCorrelation, Renumbering> calls_;
  int64_t gpu_ahead_ns_;
  const CallRecord* next_call_;
  CallRecord best_;
  bool found_ = false;
  int64_t shared_numbers_ = 0;
};

}  // namespace gpusonde::analyze
