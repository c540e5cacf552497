// SPDX-License-Identifier: Apache-2.0
#include "server/call_trie.h"

#include <utility>

namespace gpusonde::server {

CallTrie::CallTrie() : parent_{-1}, function_{-1}, slots_(1024) {}

int32_t CallTrie::Insert(std::span<const int32_t> path) {
  int32_t node = 0;
  for (const int32_t function : path) {
    const uint64_t key = KeyOf(node, function);
    Slot* slot = &Find(key);
    if (slot->node == 0) {
      if (parent_.size() * 2 > slots_.size()) {
        Grow();
        slot = &Find(key);
      }
      *slot = {key, static_cast<int32_t>(parent_.size())};
      parent_.push_back(node);
      function_.push_back(function);
    }
    node = slot->node;
  }
  return node;
}

uint64_t CallTrie::KeyOf(int32_t parent, int32_t function) {
  return uint64_t{static_cast<uint32_t>(parent)} << 32 | static_cast<uint32_t>(function);
}

CallTrie::Slot& CallTrie::Find(uint64_t key) {
  // Fibonacci hashing: the product's high bits depend on all bits of the key.
  const uint64_t product = (key ^ key >> 29) * 0x9e3779b97f4a7c15;
  const size_t mask = slots_.size() - 1;
  size_t i = static_cast<size_t>(product >> 20) & mask;
  while (slots_[i].node != 0 && slots_[i].key != key) i = (i + 1) & mask;
  return slots_[i];
}

void CallTrie::Grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (const Slot& slot : old)
    if (slot.node != 0) Find(slot.key) = slot;
}

}  // namespace gpusonde::server
