// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusonde::exporters {

// Distributes spans of a row among lanes in each of which they nest, for formats that know no others. Not
// thread-safe.
class Lanes {
 public:
  // More would be unreadable; a hostile file has any number of spans that overlap.
  static constexpr size_t kMaxLanes = 64;

  // The lane, from 0, of a span. They must come by start, the longer first. In the last of kMaxLanes lanes
  // spans may overlap.
  size_t Place(int64_t start_ns, int64_t end_ns) {
    for (size_t i = 0; i + 1 < kMaxLanes; ++i) {
      if (i == open_.size()) open_.emplace_back();
      std::vector<int64_t>& ends = open_[i];
      while (!ends.empty() && ends.back() <= start_ns) ends.pop_back();
      if (!ends.empty() && ends.back() < end_ns) continue;
      ends.push_back(end_ns);
      return i;
    }
    return kMaxLanes - 1;
  }

 private:
  std::vector<std::vector<int64_t>> open_;  // by lane: the ends of spans around the last one, outermost first
};

}  // namespace gpusonde::exporters
