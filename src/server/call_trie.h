// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpusonde::server {

// Call paths merged by their common beginnings. Node 0 is the root; a node's parent has a smaller number.
// Not thread-safe.
class CallTrie {
 public:
  CallTrie();

  // The node at the end of `path`: function numbers ≥ 0, from the root on. At most 2^31 nodes.
  int32_t Insert(std::span<const int32_t> path);

  size_t size() const { return parent_.size(); }
  // By node; -1 at the root.
  const std::vector<int32_t>& parent() const { return parent_; }
  const std::vector<int32_t>& function() const { return function_; }

 private:
  // An open-addressing hash table of (parent, function), at most half full.
  struct Slot {
    uint64_t key = 0;  // parent, function
    int32_t node = 0;  // 0: the slot is free
  };
  static uint64_t KeyOf(int32_t parent, int32_t function);
  Slot& Find(uint64_t key);
  void Grow();

  std::vector<int32_t> parent_;
  std::vector<int32_t> function_;
  std::vector<Slot> slots_;
};

}  // namespace gpusonde::server
