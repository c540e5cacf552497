// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cupti/buffers.h"

#include <csignal>
#include <cstring>

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

bool Buffers::Request() {
  if (requested_ == nullptr) return false;
  Buffer fresh;
  size_t max_records = 0;
  requested_.load()(&fresh.data, &fresh.bytes, &max_records);
  if (fresh.data == nullptr || fresh.bytes == 0) {
    if (!kIs13) std::raise(SIGSEGV);  // as the real ones before 12.9 (NVIDIA's release notes)
    return false;
  }
  fresh.room_for = max_records == 0 ? SIZE_MAX : max_records;
  current_ = fresh;
  return true;
}

void Buffers::HandBack(const Buffer& buffer) {
  if (buffer.data != nullptr && completed_ != nullptr)
    completed_.load()(nullptr, 0, buffer.data, buffer.bytes, buffer.used);
}

void Buffers::Complete() {
  const Buffer full = current_;
  current_ = {};
  const Buffer before = held_back_;
  held_back_ = {};
  if (before.data == nullptr && Chance(TheKnobs().reorder)) {
    held_back_ = full;
    return;
  }
  HandBack(full);
  HandBack(before);
}

void Buffers::Write(const Record& record) {
  const std::lock_guard lock(mutex_);
  if (Chance(TheKnobs().drop)) {
    CountDropped();
    return;
  }
  if (current_.data != nullptr && (current_.bytes - current_.used < record.size || current_.room_for == 0))
    Complete();
  if (current_.data == nullptr && !Request()) {
    CountDropped();
    return;
  }
  if (current_.bytes - current_.used < record.size) {  // too small for any record
    CountDropped();
    return;
  }
  std::memcpy(current_.data + current_.used, record.bytes, record.size);
  current_.used += record.size;
  if (current_.room_for != SIZE_MAX) --current_.room_for;
}

void Buffers::Flush() {
  const std::lock_guard lock(mutex_);
  const Buffer before = held_back_;
  const Buffer last = current_;
  held_back_ = current_ = {};
  HandBack(last);
  HandBack(before);
}

}  // namespace simgpu::cupti
