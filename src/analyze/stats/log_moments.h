// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::analyze {

// Units of logarithms to an octave: 0.07 % of a duration, finer than GPUs measure most kernels.
inline constexpr int kLogUnits = 1024;

// The logarithm of a duration to the base 2, in units of 1/kLogUnits, by whole numbers only: the same on
// every machine. Off by at most one unit. Durations under 1 ns count as 1 ns.
int32_t FixedLog2(int64_t duration_ns);

// Count, sum and sum of squares of logarithms; merging is addition. Exact up to 2^31 values.
struct LogMoments {
  int64_t count = 0;
  int64_t sum = 0;
  uint64_t squares = 0;

  void Add(int32_t log) {
    ++count;
    sum += log;
    squares += static_cast<uint64_t>(int64_t{log} * log);
  }
  void Merge(const LogMoments& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
  // Subtracts what was merged before.
  void Remove(const LogMoments& other) {
    count -= other.count;
    sum -= other.sum;
    squares -= other.squares;
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(sum);
    archive(squares);
  }

  // In units; 0 of nothing.
  double Mean() const;
  // Sample variance, at least that of rounding to units, so that equal durations have one; requires `count` ≥
  // 2.
  double Variance() const;
};

}  // namespace gpusonde::analyze
