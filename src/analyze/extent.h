// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gpusonde::analyze {

// From the first start to the last end of some events.
struct Extent {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();

  void Cover(int64_t start_ns, int64_t end_ns) {
    first_ns = std::min(first_ns, start_ns);
    last_ns = std::max(last_ns, end_ns);
  }
  bool Covers(int64_t start_ns, int64_t end_ns) const { return first_ns <= start_ns && end_ns <= last_ns; }
  // Of another extent.
  void Cover(const Extent& other) { Cover(other.first_ns, other.last_ns); }
  // Of no events.
  bool IsEmpty() const { return first_ns > last_ns; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(first_ns);
    archive(last_ns);
  }
};

}  // namespace gpusonde::analyze
