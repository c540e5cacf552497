// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>

#include "model/batch.h"

namespace gpusonde::otlp {

// Counts the rows that arrive too late for a profile, after the window of their time (ProfileWindows) was
// read. Rows that arrive while it is read count too, though the profile may have them. Thread-safe.
class LateRows {
 public:
  // Call when queries of the store begin to see these rows. A pack of kernels counts as its kernels.
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
