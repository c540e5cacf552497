// SPDX-License-Identifier: Apache-2.0
#include "server/call_trie.h"

#include <algorithm>
#include <utility>

namespace gpusonde::server {

namespace {

uint64_t KeyOf(int32_t parent, int32_t function) {
  return uint64_t{static_cast<uint32_t>(parent)} << 32 | static_cast<uint32_t>(function);
}

}  // namespace

CallTrie::CallTrie() : parent_{-1}, function_{-1}, slots_(1024) {}

void CallTrie::Insert(std::span<const std::span<const int32_t>> paths, std::span<int32_t> ends) {
  std::ranges::fill(ends, 0);
  size_t longest = 0;
  for (const auto& path : paths) longest = std::max(longest, path.size());
  for (size_t depth = 0; depth < longest; ++depth) {
    for (size_t i = 0; i < paths.size(); ++i)
      if (depth < paths[i].size()) __builtin_prefetch(&slots_[Home(KeyOf(ends[i], paths[i][depth]))]);
    for (size_t i = 0; i < paths.size(); ++i)
      if (depth < paths[i].size()) ends[i] = ChildOf(ends[i], paths[i][depth]);
  }
}

int32_t CallTrie::ChildOf(int32_t parent, int32_t function) {
  const uint64_t key = KeyOf(parent, function);
  Slot* slot = &Find(key);
  if (slot->node != 0) return slot->node;
  if (parent_.size() * 2 > slots_.size()) {
    Grow();
    slot = &Find(key);
  }
  *slot = {key, static_cast<int32_t>(parent_.size())};
  parent_.push_back(parent);
  function_.push_back(function);
  return slot->node;
}

size_t CallTrie::Home(uint64_t key) const {
  // Fibonacci hashing: the product's high bits depend on all bits of the key.
  const uint64_t product = (key ^ key >> 29) * 0x9e3779b97f4a7c15;
  return static_cast<size_t>(product >> 20) & (slots_.size() - 1);
}

CallTrie::Slot& CallTrie::Find(uint64_t key) {
  size_t i = Home(key);
  while (slots_[i].node != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  return slots_[i];
}

void CallTrie::Grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (const Slot& slot : old)
    if (slot.node != 0) Find(slot.key) = slot;
}

}  // namespace gpusonde::server
