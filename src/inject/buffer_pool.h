// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cupti.h"

// The buffers that CUPTI writes its records to. A buffer is free, held by CUPTI, or completed and waiting to
// be read, in order of completion. Thread-safe.
namespace gpusonde::inject {

struct Buffer {
  uint8_t* bytes;
  size_t valid_bytes;
  Buffer* next;
  bool held;  // by CUPTI
};

// Before a session. Buffers that were completed since the last one ended are of no session: their records are
// only counted, as dropped. `finalized`: CUPTI was, since then, and holds none any more.
//
// CUPTI before 12.9 crashes when it is refused a buffer (its release notes): it gets spare ones instead,
// whose records are only counted, too.
void BeginBuffers(const Cupti& cupti, bool finalized);

// CUPTI's callbacks (cuptiActivityRegisterCallbacks). CUPTI 13 asks for a buffer for each thread that makes
// calls.
void RequestBuffer(uint8_t** buffer, size_t* bytes, size_t* max_records);
void CompleteBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);

// The completed buffer that waits longest, null if there is none; to be returned with ReturnBuffer.
Buffer* PopWaitingBuffer();
void ReturnBuffer(Buffer* buffer);

}  // namespace gpusonde::inject
