// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/cupti.h"

// From CUPTI's buffers to records and totals. Records are counted and told by our own thread, so that CUPTI's
// threads and the host's only pass buffers along. Thread-safe.
namespace gpusonde::inject {

// CUPTI's buffer callbacks.
void RequestBuffer(uint8_t** buffer, size_t* bytes, size_t* max_records);
void CompleteBuffer(void* context, uint32_t stream_id, uint8_t* buffer, size_t bytes, size_t valid_bytes);

// Begins the account of a session and tells it.
void BeginAccount(const Cupti& cupti, uint32_t session);
// Takes what CUPTI has completed. `own_thread`: called from the library's thread, which may ask the driver
// about devices and wait for a slow reader.
void TakeRecords(bool own_thread);
// Tells sums and drops that have changed, and hands everything over.
void TellTotals();
// Tells the last of a session.
void EndAccount(uint32_t reason);
// Tells who else holds CUPTI.
void TellForeign(const char* holder, uint64_t until_ns);

// A module is about to go, and the names of its kernels with it: takes what uses them.
void ModuleUnloading();

// Buffers and records that have come since the process began; the time of ours that went into them, with what
// CUPTI itself says that it cost.
struct Progress {
  uint64_t records;
  uint64_t cost_ns;
};
Progress ActivityProgress();

}  // namespace gpusonde::inject
