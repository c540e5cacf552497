// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace gpusonde::ebpf {

// Allocates intervals of [0, capacity), first fit. Not thread-safe.
class IntervalAllocator {
 public:
  explicit IntervalAllocator(uint32_t capacity) : capacity_(capacity) {
    if (capacity > 0) free_[0] = capacity;
  }

  // The begin of an interval of `size` > 0; nullopt when there is no such gap.
  std::optional<uint32_t> Allocate(uint32_t size) {
    for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
      const auto [begin, length] = *gap;
      if (length < size) continue;
      free_.erase(gap);
      if (length > size) free_[begin + size] = length - size;
      return begin;
    }
    return std::nullopt;
  }

  // Frees an interval returned by Allocate(size).
  void Free(uint32_t begin, uint32_t size) {
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == begin + size) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        before->second += size;
        return;
      }
    }
    free_[begin] = size;
  }

  bool IsAllFree() const { return free_.size() == 1 && free_.begin()->second == capacity_; }

 private:
  uint32_t capacity_;
  std::map<uint32_t, uint32_t> free_;  // begin to length; adjacent ones are merged
};

}  // namespace gpusonde::ebpf
