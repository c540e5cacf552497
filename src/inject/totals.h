// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/sink.h"

namespace gpusonde::inject {

// Counts and sums of all activity that CUPTI reported in a session, by type, device, and name or kind. Not
// thread-safe.
class Totals {
 public:
  void Clear();
  // Adds one activity; `of` is its gpusonde_gpu_type. One that has no start, or ends before it, counts as
  // untimed.
  void Add(uint32_t of, uint32_t device, uint32_t key, uint64_t start_ns, uint64_t end_ns, uint64_t bytes);
  // Adds the totals that have changed since they were last sent to `out`, and calls `grown(of, key, time_ns)`
  // for each with the increase of its time.
  template <class Grown>
  void Send(uint32_t session, Batch& out, Grown grown) {
    for (size_t i = 0; i < count_; ++i) {
      Entry& entry = table_->entries[table_->used[i]];
      if (entry.changed == 0) continue;
      grown(entry.of, entry.key, entry.total_ns - entry.sent_ns);
      entry.changed = 0;
      entry.sent_ns = entry.total_ns;
      Send(entry, session, out);
    }
  }
  // Adds all totals to `out`, changed or not.
  void Resend(uint32_t session, Batch& out) const;

 private:
  static constexpr size_t kSlots = 32768;
  static constexpr size_t kMaxEntries = kSlots / 2;

  struct Entry {
    uint64_t count;
    uint64_t untimed;
    uint64_t total_ns;
    uint64_t sent_ns;
    uint64_t bytes;
    uint32_t of;  // 0: free
    uint32_t device;
    uint32_t key;
    uint32_t changed;
  };

  struct Table {
    Entry entries[kSlots];
    uint16_t used[kMaxEntries];  // the slots in use: a program has tens of sums, and the slots are 2 MiB
  };
  static_assert(kSlots - 1 <= UINT16_MAX);

  static void Send(const Entry& entry, uint32_t session, Batch& out);

  Table* table_ = nullptr;
  size_t count_ = 0;
};

}  // namespace gpusonde::inject
