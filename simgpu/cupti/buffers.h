// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "simgpu/cupti/records.h"

namespace simgpu::cupti {

// The client's buffers: requested when a record needs one, returned when full or flushed. The callbacks are
// process-wide: the last client to register gets everything, as with the real CUPTI. CUPTI 12 fills one
// buffer at a time, CUPTI 13 one for each thread that makes calls (67 with 100 threads, seen on an H200).
//
// Thread-safe; the client's callbacks may call back into CUPTI, except to flush.
class Buffers {
 public:
  static Buffers& Get();

  void Register(gpusonde_cupti_buffer_requested* requested, gpusonde_cupti_buffer_completed* completed);
  bool registered() const { return requested_ != nullptr; }

  // Identifies the calling thread.
  using Thread = const void*;
  static Thread ThisThread();

  // Writes a record of a call of this thread, or counts it as dropped when the client has no room for it.
  void Write(const Record& record, Thread thread);
  // Returns the buffers that are held, of one thread or of all.
  void Flush(Thread thread);
  void FlushAll();
  // Forgets the buffers that are held.
  void Drop();

  void CountDropped() { ++dropped_; }
  size_t TakeDropped() { return dropped_.exchange(0); }

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t bytes = 0;
    size_t used = 0;
    size_t room_for = 0;  // records that may still be written
  };

  struct Held {
    Buffer current;
    Buffer held_back;  // full, but to be delivered after the next one
  };

  bool Request(Held& held);
  void Complete(Held& held);
  void HandBack(const Buffer& buffer);
  void HandBack(const Held& held);

  // A client's callback may make CUPTI write a record or request a buffer again on the same thread.
  std::recursive_mutex mutex_;
  std::atomic<gpusonde_cupti_buffer_requested*> requested_ = nullptr;
  std::atomic<gpusonde_cupti_buffer_completed*> completed_ = nullptr;
  std::unordered_map<Thread, Held> held_;
  std::atomic<size_t> dropped_ = 0;
};

}  // namespace simgpu::cupti
