// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cupti/buffers.h"

#include <csignal>
#include <cstring>
#include <utility>

namespace simgpu::cupti {

Buffers& Buffers::Get() {
  static Buffers& buffers = *new Buffers;
  return buffers;
}

void Buffers::Register(gpusonde_cupti_buffer_requested* requested,
                       gpusonde_cupti_buffer_completed* completed) {
  const std::lock_guard lock(mutex_);
  requested_ = requested;
  completed_ = completed;
}

// The threads of CUPTI 12 share one.
Buffers::Thread Buffers::ThisThread() {
  static thread_local const char thread = 0;
  return kIs13 ? &thread : nullptr;
}

bool Buffers::Request(Held& held) {
  if (requested_ == nullptr) return false;
  Buffer fresh;
  size_t max_records = 0;
  requested_.load()(&fresh.data, &fresh.bytes, &max_records);
  if (fresh.data == nullptr || fresh.bytes == 0) {
    if (!kIs13) std::raise(SIGSEGV);  // as the real ones before 12.9 (NVIDIA's release notes)
    return false;
  }
  fresh.room_for = max_records == 0 ? SIZE_MAX : max_records;
  held.current = fresh;
  return true;
}

void Buffers::HandBack(const Buffer& buffer) {
  if (buffer.data != nullptr && completed_ != nullptr)
    completed_.load()(nullptr, 0, buffer.data, buffer.bytes, buffer.used);
}

void Buffers::HandBack(const Held& held) {
  HandBack(held.current);
  HandBack(held.held_back);
}

void Buffers::Complete(Held& held) {
  const Buffer full = held.current;
  held.current = {};
  const Buffer before = held.held_back;
  held.held_back = {};
  if (before.data == nullptr && Chance(TheKnobs().reorder)) {
    held.held_back = full;
    return;
  }
  HandBack(full);
  HandBack(before);
}

void Buffers::Write(const Record& record, Thread thread) {
  const std::lock_guard lock(mutex_);
  if (Chance(TheKnobs().drop)) {
    CountDropped();
    return;
  }
  Held& held = held_[thread];
  if (held.current.data != nullptr &&
      (held.current.bytes - held.current.used < record.size || held.current.room_for == 0))
    Complete(held);
  if (held.current.data == nullptr && !Request(held)) {
    CountDropped();
    return;
  }
  Buffer& to = held.current;
  if (to.bytes - to.used < record.size) {  // too small for any record
    CountDropped();
    return;
  }
  std::memcpy(to.data + to.used, record.bytes, record.size);
  to.used += record.size;
  if (to.room_for != SIZE_MAX) --to.room_for;
}

void Buffers::Flush(Thread thread) {
  const std::lock_guard lock(mutex_);
  const Held held = std::exchange(held_[thread], {});
  HandBack(held);
}

void Buffers::FlushAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& [thread, held] : std::exchange(held_, {})) HandBack(held);
}

void Buffers::Drop() {
  const std::lock_guard lock(mutex_);
  held_.clear();
}

}  // namespace simgpu::cupti
