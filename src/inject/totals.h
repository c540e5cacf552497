// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/sink.h"

namespace gpusonde::inject {

// Counts and sums of everything that CUPTI told in a session, by what it was, where it ran and its name or
// kind. Not thread-safe.
class Totals {
 public:
  void Clear();
  // One activity: `of` is its gpusonde_gpu_type. A zero or backward time counts it as untimed.
  void Add(uint32_t of, uint32_t device, uint32_t key, uint64_t start_ns, uint64_t end_ns, uint64_t bytes);
  // Tells what has changed since it was last told. `grown(of, key, time_ns)` is called for each of these with
  // the time that came since.
  template <class Grown>
  void Tell(uint32_t session, Batch& out, Grown grown) {
    for (size_t slot = 0; entries_ != nullptr && count_ != 0 && slot < kSlots; ++slot) {
      Entry& entry = entries_[slot];
      if (entry.changed == 0) continue;
      grown(entry.of, entry.key, entry.total_ns - entry.told_ns);
      entry.changed = 0;
      entry.told_ns = entry.total_ns;
      Tell(entry, session, out);
    }
  }
  // Tells all as they are.
  void TellAgain(uint32_t session, Batch& out) const;

 private:
  static constexpr size_t kSlots = 32768;
  static constexpr size_t kMaxEntries = kSlots / 2;

  struct Entry {
    uint64_t count;
    uint64_t untimed;
    uint64_t total_ns;
    uint64_t told_ns;
    uint64_t bytes;
    uint32_t of;  // 0: free
    uint32_t device;
    uint32_t key;
    uint32_t changed;
  };

  static void Tell(const Entry& entry, uint32_t session, Batch& out);

  Entry* entries_ = nullptr;
  size_t count_ = 0;
};

}  // namespace gpusonde::inject
