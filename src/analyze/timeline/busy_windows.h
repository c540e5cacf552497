// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/timeline/windows.h"
#include "base/int128.h"

namespace gpusonde::analyze {

// How long a device was busy in each of the kWindows windows of its span. Add events by start time.
class BusyWindows {
 public:
  // `last_ns` is not before any end.
  BusyWindows(int64_t first_ns, int64_t last_ns)
      : first_ns_(first_ns),
        span_ns_(std::max<int64_t>(1, last_ns - first_ns)),
        covered_to_(first_ns),
        window_end_ns_(EdgeOf(1)),
        busy_ns_(kWindows) {}

  void Add(int64_t start_ns, int64_t end_ns) {
    start_ns = std::max(start_ns, covered_to_);
    if (end_ns <= start_ns) return;
    covered_to_ = end_ns;
    while (true) {
      if (start_ns < window_end_ns_) busy_ns_[window_] += std::min(end_ns, window_end_ns_) - start_ns;
      if (end_ns <= window_end_ns_ || window_ + 1 == kWindows) return;
      start_ns = std::max(start_ns, window_end_ns_);
      window_end_ns_ = EdgeOf(++window_ + 1);
    }
  }
  std::vector<int64_t> Finish() { return std::move(busy_ns_); }

 private:
  int64_t EdgeOf(size_t window) const {
    return first_ns_ + static_cast<int64_t>(Int128{span_ns_} * static_cast<int64_t>(window) / kWindows);
  }

  int64_t first_ns_;
  int64_t span_ns_;
  int64_t covered_to_;
  size_t window_ = 0;
  int64_t window_end_ns_;
  std::vector<int64_t> busy_ns_;
};

}  // namespace gpusonde::analyze
