// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/gpu_event.h"

// The outputs of the library: the USDT probes, and a socket that the process inherited from `gpusonde
// record`.
namespace gpusonde::inject {

// "GPUSONDE_INJECT_SOCKET=FD:INODE[:PID]": a SOCK_SEQPACKET socket that the process inherited, and the
// recorder that reads it, if that can attach to probes as well. Not a pipe, because writing to a pipe without
// a reader raises SIGPIPE in the host. The inode identifies the socket: a program may close descriptors that
// it doesn't know, and open another file under the same number.
inline constexpr const char* kSocketVariable = "GPUSONDE_INJECT_SOCKET";
void OpenSocket(const char* value);

// Whether there is a consumer. Costs one load each of four variables.
bool HasConsumers();
// Whether the socket is open: the program was started under `gpusonde record`.
bool SocketOpen();
// Whether the environment names a socket that this process no longer has: the program closed it, or the
// launcher that was recorded did not pass it on (the default of Python's subprocess). The recorder is
// expected to attach to the probes instead.
bool SocketLost();
// Whether the recorder of the socket runs and can attach to probes. False if it was named in another pid
// namespace, where its pid is somebody else's or nobody's.
bool RecorderRuns();
// No longer expects the recorder of a lost socket.
void ForgetSocket();

// Sends a batch to all consumers. `batch` begins with room for the header, which is filled in here.
// Thread-safe. `may_block`: when the socket is full, the library's thread waits for its reader until the
// deadline of SetSendDeadline. The host's threads never wait.
void Deliver(uint32_t channel, uint32_t session, void* batch, size_t bytes, bool may_block);

// Until when (NowNs()) Deliver may wait for a slow reader, over all its batches; the library's thread calls
// it before each round of work.
void SetSendDeadline(uint64_t deadline_ns);
// While set, Deliver doesn't wait for a slow reader and drops batches instead: keeping up with CUPTI matters
// more, as totals need every record.
void SetNonblocking(bool nonblocking);
// The same as long as it exists: a thread of the host waits for a lock that the library's thread may hold
// while it sends.
class HostWaits {
 public:
  HostWaits();
  ~HostWaits();
  HostWaits(const HostWaits&) = delete;
  HostWaits& operator=(const HostWaits&) = delete;
};

// Counts drops by gpusonde_gpu_drop. Thread-safe.
void CountDrop(uint32_t reason, uint64_t count = 1);
void CopyDrops(uint64_t (&counts)[GPUSONDE_GPU_DROP_REASONS]);

// A batch being filled with records of one channel. Not thread-safe.
class Batch {
 public:
  // `before`: a batch that is flushed before this one, as its records define what this one's refer to.
  constexpr Batch(uint32_t channel, bool may_block, Batch* before = nullptr)
      : channel_(channel), may_block_(may_block), before_(before) {}

  // Room for a record of this type and size (rounded up to 8 bytes), zeroed, with its header written. Flushes
  // the batch first if the record doesn't fit. `bytes` ≤ GPUSONDE_GPU_BATCH_BYTES less the header.
  void* Add(uint32_t session, uint16_t type, size_t bytes);
  void Flush();

 private:
  uint32_t channel_;
  bool may_block_;
  Batch* before_;
  uint32_t session_ = 0;
  size_t used_ = 0;
  alignas(8) uint8_t bytes_[GPUSONDE_GPU_BATCH_BYTES] = {};
};

}  // namespace gpusonde::inject
