// SPDX-License-Identifier: Apache-2.0
#include "agent/address_space.h"

#include <iterator>

namespace gpusonde::agent {

bool AddressSpace::Has(const Mapping& mapping) const {
  const Mapping* known = Find(mapping.start);
  if (known == nullptr || known->end < mapping.end || known->binary != mapping.binary) return false;
  // Anonymous memory has no file that an offset could be in.
  return mapping.binary == nullptr ||
         mapping.start - mapping.file_offset == known->start - known->file_offset;
}

bool AddressSpace::Map(const Mapping& mapping) {
  if (mapping.start >= mapping.end || Has(mapping)) return false;
  ++generation_;
  auto next = by_start_.lower_bound(mapping.start);
  if (next != by_start_.begin()) {
    Mapping& before = std::prev(next)->second;
    if (before.end > mapping.end) {  // split in three: its tail stays
      Mapping tail = before;
      tail.start = mapping.end;
      tail.file_offset += mapping.end - before.start;
      next = by_start_.emplace_hint(next, tail.start, tail);
    }
    if (before.end > mapping.start) before.end = mapping.start;
  }
  while (next != by_start_.end() && next->first < mapping.end) {
    Mapping covered = next->second;
    next = by_start_.erase(next);
    if (covered.end <= mapping.end) continue;
    covered.file_offset += mapping.end - covered.start;
    covered.start = mapping.end;
    next = by_start_.emplace_hint(next, covered.start, covered);
  }
  by_start_[mapping.start] = mapping;
  return true;
}

void AddressSpace::Clear() {
  by_start_.clear();
  ++generation_;
}

const AddressSpace::Mapping* AddressSpace::Find(uint64_t address) const {
  auto after = by_start_.upper_bound(address);
  if (after == by_start_.begin()) return nullptr;
  const Mapping& mapping = std::prev(after)->second;
  return address < mapping.end ? &mapping : nullptr;
}

}  // namespace gpusonde::agent
