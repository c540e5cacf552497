// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/gpu_event.h"

// The ways out of the process: the USDT probes, and a socket that `gpusonde record` left to us.
namespace gpusonde::inject {

// "GPUSONDE_INJECT_SOCKET=FD:INODE": a datagram socket (SOCK_SEQPACKET) that the process inherited. A socket
// and no pipe, because writing to a pipe that nobody reads raises SIGPIPE in somebody else's program. The
// inode tells whether the number still means that socket: a program may close what it doesn't know and open
// something else there.
inline constexpr const char* kSocketVariable = "GPUSONDE_INJECT_SOCKET";
void OpenSocket(const char* value);

// Whether anybody listens. One load each of four variables.
bool Heard();
// Whether a socket is open: somebody records this very program.
bool SocketOpen();
// Whether there was to be a socket and it is closed at our end: by the program itself, or by a launcher that
// was recorded and kept it to itself (Python's subprocess does by default). Its recorder listens to the
// probes too.
bool SocketLost();
// The recorder has gone.
void ForgetSocket();

// Hands a batch to everybody who listens. `batch` begins with room for the header, which is filled in here.
// Thread-safe. `patient`: when the socket is full, wait for its reader for up to a second; for threads of our
// own only.
void Deliver(uint32_t channel, uint32_t session, void* batch, size_t bytes, bool patient);

// Until then (NowNs()) Deliver may wait for a slow reader, all its batches together; set by our own thread
// before each round of work.
void SetPatience(uint64_t until_ns);
// While this is set nobody waits for a slow reader: counting goes before telling.
void SetHurry(bool hurry);

// Counts what was lost, by gpusonde_gpu_drop. Thread-safe.
void CountDrop(uint32_t reason, uint64_t count = 1);
void CopyDrops(uint64_t (&counts)[GPUSONDE_GPU_DROP_REASONS]);

// A batch being filled with records of one channel. Not thread-safe.
class Batch {
 public:
  // `before` goes out before this one whenever this one does: what its records are read with.
  constexpr Batch(uint32_t channel, bool patient, Batch* before = nullptr)
      : channel_(channel), patient_(patient), before_(before) {}

  // Room for a record of this type and size (rounded up to 8 bytes), zeroed, its header written; hands over
  // what is full. `bytes` ≤ GPUSONDE_GPU_BATCH_BYTES less the header.
  void* Add(uint32_t session, uint16_t type, size_t bytes);
  void Flush();

 private:
  uint32_t channel_;
  bool patient_;
  Batch* before_;
  uint32_t session_ = 0;
  size_t used_ = 0;
  alignas(8) uint8_t bytes_[GPUSONDE_GPU_BATCH_BYTES] = {};
};

}  // namespace gpusonde::inject
