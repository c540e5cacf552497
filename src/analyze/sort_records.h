// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusonde::analyze {

// Sorts records that are mostly in order, as events of a trace are (std::sort would compare each twenty
// times): first by insertion while little has to move, then by radix on Less::Radix(record), an integer
// consistent with Less, and by Less within equal ones.
template <class Record, class Less, class Records = std::vector<Record>>
class RecordSorter {
 public:
  // The first `sorted` are in order already.
  void Sort(Records& records, size_t sorted = 0) {
    if (!Insert(records, sorted)) Radix(records);
  }

 private:
  struct Key {
    uint64_t radix;
    uint64_t index;
  };

  // Returns false if that would take too long; the records are then permuted.
  static bool Insert(Records& records, size_t sorted) {
    size_t moves_left = 4 * records.size();
    for (size_t i = std::max<size_t>(1, sorted); i < records.size(); ++i) {
      if (!Less()(records[i], records[i - 1])) continue;
      const Record record = records[i];
      size_t at = i;
      for (; at > 0 && Less()(record, records[at - 1]); --at) {
        records[at] = records[at - 1];
        if (--moves_left == 0) {
          records[at - 1] = record;
          return false;
        }
      }
      records[at] = record;
    }
    return true;
  }

  void Radix(Records& records) {
    keys_.resize(records.size());
    uint64_t low = ~uint64_t{0};
    uint64_t high = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      keys_[i] = {Less::Radix(records[i]), i};
      low = std::min(low, keys_[i].radix);
      high = std::max(high, keys_[i].radix);
    }
    for (Key& key : keys_) key.radix -= low;
    other_keys_.resize(keys_.size());
    for (int shift = 0; shift < 64 && ((high - low) >> shift) != 0; shift += kDigitBits) Pass(shift);
    sorted_.clear();
    sorted_.reserve(records.size());
    for (const Key& key : keys_) sorted_.push_back(records[key.index]);
    for (size_t begin = 0; begin < keys_.size();) {
      size_t end = begin + 1;
      while (end < keys_.size() && keys_[end].radix == keys_[begin].radix) ++end;
      if (end - begin > 1)
        std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin),
                  sorted_.begin() + static_cast<std::ptrdiff_t>(end), Less());
      begin = end;
    }
    records.swap(sorted_);
  }

  // Stable, by one digit.
  void Pass(int shift) {
    std::array<size_t, kDigits + 1> begins{};
    for (const Key& key : keys_) ++begins[(key.radix >> shift) % kDigits + 1];
    for (size_t i = 1; i <= kDigits; ++i) begins[i] += begins[i - 1];
    for (const Key& key : keys_) other_keys_[begins[(key.radix >> shift) % kDigits]++] = key;
    keys_.swap(other_keys_);
  }

  static constexpr int kDigitBits = 11;
  static constexpr size_t kDigits = size_t{1} << kDigitBits;

  std::vector<Key> keys_, other_keys_;
  Records sorted_;
};

}  // namespace gpusonde::analyze
