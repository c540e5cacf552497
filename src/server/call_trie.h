// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpusonde::server {

// Call paths merged by common prefix. Node 0 is the root; a parent's number is smaller than its children's.
// Not thread-safe.
class CallTrie {
 public:
  CallTrie();

  // How many paths to insert at once. The time goes into cache misses, and paths that are walked side by side
  // overlap them: 1 M stacks of 40 frames, 1 M nodes, take 3.5 s one by one, 1.2 s in blocks of 16, 1.1 s of
  // 32, 1.2 s of 64 (bench/server_bench, BuildTree, on 2 shared cores).
  static constexpr size_t kBlock = 32;

  // Inserts paths of function numbers ≥ 0, root first, and sets `ends` to the last node of each. `ends` is as
  // long as `paths`. At most 2^31 nodes.
  void Insert(std::span<const std::span<const int32_t>> paths, std::span<int32_t> ends);

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
  // The slot where the search for a key begins.
  size_t Home(uint64_t key) const;
  Slot& Find(uint64_t key);
  int32_t ChildOf(int32_t parent, int32_t function);
  void Grow();

  std::vector<int32_t> parent_;
  std::vector<int32_t> function_;
  std::vector<Slot> slots_;
};

}  // namespace gpusonde::server
