// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "simgpu/cupti/records.h"

namespace simgpu::cupti {

// The client's buffers: asked for when a record needs one, handed back when full or flushed. The callbacks
// are process-wide: who registers last gets everything, as with the real CUPTI.
//
// Thread-safe; the client's callbacks may call back into CUPTI, but for flushing.
class Buffers {
 public:
  static Buffers& Get();

  void Register(gpusonde_cupti_buffer_requested* requested, gpusonde_cupti_buffer_completed* completed);
  bool registered() const { return requested_ != nullptr; }

  // Writes a record, or counts it as dropped when the client has no room for it.
  void Write(const Record& record);
  // Hands back what is held.
  void Flush();

  void CountDropped() { ++dropped_; }
  size_t TakeDropped() { return dropped_.exchange(0); }

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t bytes = 0;
    size_t used = 0;
    size_t room_for = 0;  // records that may still be written
  };

  bool Request();
  void Complete();
  void HandBack(const Buffer& buffer);

  // A client's callback may make CUPTI write or ask again on the same thread.
  std::recursive_mutex mutex_;
  std::atomic<gpusonde_cupti_buffer_requested*> requested_ = nullptr;
  std::atomic<gpusonde_cupti_buffer_completed*> completed_ = nullptr;
  Buffer current_;
  Buffer held_back_;  // full, but to be delivered after the next one
  std::atomic<size_t> dropped_ = 0;
};

}  // namespace simgpu::cupti
