// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>

#include "model/batch.h"

namespace gpusonde::otlp {

// Counts the rows that come too late for the profile of their time: whose window (ProfileWindows) was read
// before they came. Those that come while it is read count, though it may have them. Thread-safe.
class LateRows {
 public:
  // Rows that come to a store whose queries see them from now on. A pack of kernels counts as its kernels.
  void Count(std::span<const model::Batch> batches);

  // The window until this time, in ns since the epoch, is about to be read.
  void BeginReading(int64_t until_ns) { read_until_ns_ = until_ns; }

  int64_t count() const { return count_; }

 private:
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();

  std::atomic<int64_t> read_until_ns_ = kNothing;
  std::atomic<int64_t> count_ = 0;
};

}  // namespace gpusonde::otlp
