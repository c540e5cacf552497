// SPDX-License-Identifier: Apache-2.0
#include "inject/buffer_pool.h"

#include "inject/control.h"
#include "inject/libc.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

// CUPTI clears a buffer on the program's thread before it uses it, so they are small: 1,200 kernels. CUPTI 13
// holds one for each thread that launches (67 with 100 threads on an H200), so they are many.
constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kBuffers = 256;
constexpr size_t kSpareBytes = size_t{64} << 10;
// With this many completed buffers our thread is woken before its next tick. Not with the first: CUPTI may
// complete many that are nearly empty.
constexpr size_t kWakeAtWaiting = 32;
// With this many, sending no longer waits for a slow reader: keeping up with CUPTI matters more.
constexpr size_t kNonblockingAtWaiting = kBuffers / 2;
// CUPTI_API_VERSION of CUDA 12.9, the first that may be refused a buffer.
constexpr uint32_t kMayBeRefusedVersion = 27;

// At the beginning of its pages; the buffer is behind it.
struct Spare {
  Spare* next;
  uint64_t held;
};

Mutex g_pool;  // guards everything below
const Cupti* g_cupti = nullptr;
Buffer g_buffers[kBuffers];
size_t g_buffer_count = 0;
Buffer* g_free = nullptr;
Buffer* g_waiting = nullptr;
Buffer** g_last_waiting = &g_waiting;
size_t g_waiting_count = 0;
Spare* g_spares = nullptr;

Buffer* FreeBuffer() {
  Buffer* buffer = g_free;
  if (buffer != nullptr) {
    g_free = buffer->next;
    return buffer;
  }
  if (g_buffer_count == kBuffers) return nullptr;
  buffer = &g_buffers[g_buffer_count];
  buffer->bytes = static_cast<uint8_t*>(Pages(kBufferBytes));
  if (buffer->bytes == nullptr) return nullptr;
  ++g_buffer_count;
  return buffer;
}

void Free(Buffer& buffer) {
  buffer.next = g_free;
  g_free = &buffer;
}

Buffer* FindHeld(const uint8_t* bytes) {
  for (size_t i = 0; i < g_buffer_count; ++i)
    if (g_buffers[i].bytes == bytes && g_buffers[i].held) return &g_buffers[i];
  return nullptr;
}

uint8_t* BytesOf(Spare* spare) { return reinterpret_cast<uint8_t*>(spare + 1); }

uint8_t* HoldSpare() {
  Spare* spare = g_spares;
  while (spare != nullptr && spare->held != 0) spare = spare->next;
  if (spare == nullptr) {
    spare = static_cast<Spare*>(Pages(kSpareBytes));
    if (spare == nullptr) return nullptr;
    spare->next = g_spares;
    g_spares = spare;
  }
  spare->held = 1;
  return BytesOf(spare);
}

Spare* FindSpare(const uint8_t* bytes) {
  Spare* spare = g_spares;
  while (spare != nullptr && BytesOf(spare) != bytes) spare = spare->next;
  return spare;
}

uint64_t CountRecords(uint8_t* bytes, size_t valid_bytes) {
  uint64_t count = 0;
  void* record = nullptr;
  while (g_cupti->get_next_record(bytes, valid_bytes, &record) == GPUSONDE_CUPTI_SUCCESS) ++count;
  return count;
}

// Returns whether our thread is to be woken.
bool AddWaiting(Buffer* buffer, size_t valid_bytes) {
  buffer->valid_bytes = valid_bytes < kBufferBytes ? valid_bytes : kBufferBytes;
  buffer->next = nullptr;
  *g_last_waiting = buffer;
  g_last_waiting = &buffer->next;
  ++g_waiting_count;
  if (g_waiting_count == kNonblockingAtWaiting) SetNonblocking(true);
  return g_waiting_count == kWakeAtWaiting;
}

Buffer* TakeWaiting() {
  Buffer* buffer = g_waiting;
  if (buffer == nullptr) return nullptr;
  g_waiting = buffer->next;
  --g_waiting_count;
  if (g_waiting_count < kWakeAtWaiting) SetNonblocking(false);
  if (g_waiting == nullptr) g_last_waiting = &g_waiting;
  return buffer;
}

}  // namespace

void BeginBuffers(const Cupti& cupti, bool finalized) {
  const Locked locked(g_pool);
  g_cupti = &cupti;
  while (Buffer* late = TakeWaiting()) {
    CountDrop(GPUSONDE_GPU_DROP_CUPTI, CountRecords(late->bytes, late->valid_bytes));
    Free(*late);
  }
  if (!finalized) return;
  for (size_t i = 0; i < g_buffer_count; ++i) {
    if (!g_buffers[i].held) continue;
    g_buffers[i].held = false;
    Free(g_buffers[i]);
  }
  for (Spare* spare = g_spares; spare != nullptr; spare = spare->next) spare->held = 0;
}

void RequestBuffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = nullptr;
  *bytes = 0;
  *max_records = 0;
  if (IsForkedChild()) return;
  const Locked locked(g_pool);
  if (Buffer* free = FreeBuffer()) {
    free->held = true;
    *buffer = free->bytes;
    *bytes = kBufferBytes;
    return;
  }
  CountDrop(GPUSONDE_GPU_DROP_BUFFERS);
  if (g_cupti == nullptr || g_cupti->version >= kMayBeRefusedVersion) return;
  *buffer = HoldSpare();
  if (*buffer != nullptr) *bytes = kSpareBytes - sizeof(Spare);
}

void CompleteBuffer(void*, uint32_t, uint8_t* bytes, size_t, size_t valid_bytes) {
  if (IsForkedChild()) return;
  bool wake = false;
  {
    const Locked locked(g_pool);
    if (Buffer* buffer = FindHeld(bytes)) {
      buffer->held = false;
      wake = AddWaiting(buffer, valid_bytes);
    } else if (Spare* spare = FindSpare(bytes)) {
      CountDrop(GPUSONDE_GPU_DROP_CUPTI, CountRecords(bytes, valid_bytes));
      spare->held = 0;
    }  // else another tool registered it before us
  }
  if (wake) WakeThread();
}

Buffer* PopWaitingBuffer() {
  const Locked locked(g_pool);
  return TakeWaiting();
}

void ReturnBuffer(Buffer* buffer) {
  const Locked locked(g_pool);
  Free(*buffer);
}

}  // namespace gpusonde::inject
