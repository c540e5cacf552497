// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/cost_estimate.h"
#include "inject/cupti.h"
#include "inject/governor.h"
#include "inject/step_marks.h"

// Turns CUPTI's activity buffers into records and totals. The library's own thread parses and sends them, so
// that CUPTI's threads and the host's threads only hand buffers over. Thread-safe.
namespace gpusonde::inject {

// Resets the totals for a new session and sends its begin record. `finalized`: CUPTI was, since the last one.
void BeginSession(const Cupti& cupti, uint32_t session, bool finalized);
// Makes CUPTI complete its buffers.
void FlushBuffers(const Cupti& cupti, uint32_t flags);
// Sends the records of all buffers that CUPTI has completed. `own_thread`: called from the library's thread,
// which may query the driver for devices and wait for a slow reader.
void DrainBuffers(bool own_thread);
// Sends the totals and drop counts that have changed, and flushes all batches.
void SendTotals();
// Sends the last totals and the session's end record.
void EndSession(uint32_t reason);
// Begins a window of this length in which marks of steps are looked for (StepMarks).
void BeginMarks(uint64_t now_ns, uint64_t length_ns);
// The marks of the window that ends.
StepMarks::Window EndMarks();

// Reports the profiling overhead: the shares of Governor::Use, and what the program's pace shows.
void SendOverhead(double budget, const Governor::Use& use, const CostEstimate::Interval& estimate);

// Reports that `holder`, another tool, is subscribed to CUPTI; the library retries at `until_ns`.
void SendForeignUser(const char* holder, uint64_t until_ns);

// Since the process began: the number of records, and the time that they cost: the CPU time of our thread and
// of flushes, plus the overhead that CUPTI reports about itself elsewhere.
struct Progress {
  uint64_t records;
  uint64_t cost_ns;
};
Progress ActivityProgress();

}  // namespace gpusonde::inject
