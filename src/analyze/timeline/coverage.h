// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gpusonde::analyze {

// The length of the union of intervals, added by start.
class Coverage {
 public:
  void Add(int64_t start_ns, int64_t end_ns) {
    if (end_ns <= covered_to_) return;
    length_ns_ += end_ns - std::max(start_ns, covered_to_);
    covered_to_ = end_ns;
  }
  int64_t length_ns() const { return length_ns_; }
  // Of the part before this time, which is not before the start of the interval added last.
  int64_t LengthUntil(int64_t time_ns) const {
    return length_ns_ - (covered_to_ > time_ns ? covered_to_ - time_ns : 0);
  }
  // The latest end so far; the smallest number before the first.
  int64_t covered_to() const { return covered_to_; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(covered_to_);
    archive(length_ns_);
  }

 private:
  int64_t covered_to_ = std::numeric_limits<int64_t>::min();
  int64_t length_ns_ = 0;
};

// By how much the time that two unions share grows with an interval of the first, which is about to be added
// to it. No interval of either began after its start, so from there on a union reaches to its latest end.
inline int64_t SharedGrowth(int64_t start_ns, int64_t end_ns, const Coverage& first, const Coverage& second) {
  const int64_t from_ns = std::max(start_ns, first.covered_to());
  const int64_t to_ns = std::min(end_ns, second.covered_to());
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

// The place of a pair of two numbers in the order (1, 0), (2, 0), (2, 1), (3, 0), …, in which the pairs of
// one more number come last; PairOf(n, 0) is also how many pairs n numbers have.
constexpr size_t PairOf(size_t larger, size_t smaller) { return larger * (larger - 1) / 2 + smaller; }

}  // namespace gpusonde::analyze
