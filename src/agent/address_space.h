// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "symbols/binary_table.h"

namespace gpusonde::agent {

// The executable mappings of one process. The kernel doesn't report unmapping, so a later mapping replaces
// what it covers. Copyable: a forked child starts with its parent's mappings.
class AddressSpace {
 public:
  struct Mapping {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;                              // of `start`
    const symbols::BinaryTable::Binary* binary = nullptr;  // null for anonymous memory

    bool operator==(const Mapping&) const = default;
  };

  // Removes the parts of older mappings that it covers. False, and nothing changes, for one that is known
  // already or is empty: the kernel reports a mapping again whenever its protection changes.
  bool Map(const Mapping& mapping);
  void Clear();

  // The mapping that covers `address`, or null.
  const Mapping* Find(uint64_t address) const;

  // Calls visit(mapping) for each mapping in address order.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [start, mapping] : by_start_) visit(mapping);
  }

  size_t size() const { return by_start_.size(); }

  // Changes whenever Find may return something else.
  uint64_t generation() const { return generation_; }

 private:
  bool Has(const Mapping& mapping) const;

  std::map<uint64_t, Mapping> by_start_;
  uint64_t generation_ = 0;
};

}  // namespace gpusonde::agent
