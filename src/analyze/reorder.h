// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analyze/sort_records.h"

namespace gpusonde::analyze {

// Sorts records that arrive nearly in order: add some, process the first of all present, and so on. Not
// thread-safe.
template <class Record, class Less>
class Reorder {
 public:
  // A new record, to be filled where it stays.
  Record& Add() { return records_.emplace_back(); }
  void RemoveLast() { records_.pop_back(); }
  size_t size() const { return records_.size(); }
  // All present records, sorted; valid until the next call.
  std::span<const Record> Sort() {
    sorter_.Sort(records_, sorted_);
    sorted_ = records_.size();
    return records_;
  }
  // Removes the first `count` of them.
  void Drop(size_t count) {
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
    sorted_ -= count;
  }

 private:
  std::vector<Record> records_;
  size_t sorted_ = 0;  // how many of the first are in order
  RecordSorter<Record, Less> sorter_;
};

}  // namespace gpusonde::analyze
