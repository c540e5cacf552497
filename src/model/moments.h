// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/int128.h"

namespace gpusonde::model {

// Count, sum and sum of squares of whole numbers, exactly, with the smallest and the largest. Merging is
// addition, so the result is the same to the bit in whatever order numbers and parts come. (Running means,
// as in Welford's or Chan's formulas, are not: 2 and 3 parts round differently.)
//
// Deviations are exact while the sum of squares fits 124 bits, e.g. 2^28 durations of three days in ns;
// beyond, they are approximate, and squares stay at the largest number instead of wrapping.
class Moments {
 public:
  void Add(int64_t value) {
    ++count_;
    sum_ += value;
    const Uint128 magnitude = value < 0 ? -static_cast<Uint128>(value) : static_cast<Uint128>(value);
    AddSquares(magnitude * magnitude);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  void Merge(const Moments& other) {
    count_ += other.count_;
    sum_ += other.sum_;
    AddSquares(other.squares_);
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  int64_t count() const { return count_; }
  Int128 sum() const { return sum_; }
  // The sum for display and JSON, saturated to int64_t.
  int64_t total() const;
  int64_t min() const { return count_ == 0 ? 0 : min_; }
  int64_t max() const { return count_ == 0 ? 0 : max_; }

  // Rounded to the nearest whole number, halves up; 0 of nothing.
  int64_t Mean() const;
  // Sample standard deviation (n − 1), rounded to the nearest whole number; 0 of less than two.
  int64_t StandardDeviation() const;
  // The sum of (value − mean)², rounded down; 0 of nothing.
  Uint128 SquaredDeviations() const;

  bool operator==(const Moments&) const = default;

  // The whole state, to store or send. Any values are safe to load: at worst the statistics are wrong.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count_);
    archive(min_);
    archive(max_);
    archive(sum_);
    archive(squares_);
    archive.Require(count_ >= 0 && (count_ == 0 || min_ <= max_));
  }

 private:
  void AddSquares(Uint128 squares) {
    if (__builtin_add_overflow(squares_, squares, &squares_)) squares_ = ~Uint128{0};
  }

  int64_t count_ = 0;
  int64_t min_ = std::numeric_limits<int64_t>::max();
  int64_t max_ = std::numeric_limits<int64_t>::min();
  Int128 sum_ = 0;
  Uint128 squares_ = 0;
};

}  // namespace gpusonde::model
