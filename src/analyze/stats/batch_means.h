// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpusonde::analyze {

// Count and sum of the values of one of several equally long stretches of time.
struct Batch {
  int64_t count = 0;
  int64_t sum = 0;

  void Add(int64_t value) { Merge({.count = 1, .sum = value}); }
  void Merge(const Batch& other) {
    count += other.count;
    sum += other.sum;
  }
};

// How well the mean of measured values is known.
struct MeanError {
  double variance = 0;  // of the mean, in the values' unit squared
  double freedom = 0;   // degrees of freedom of that estimate; 0: unknown

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(variance);
    archive(freedom);
  }
};

// The variance of the mean of values that depend on those before (clocks and temperatures change slowly), by
// the method of batch means (Conway 1963): successive values may depend on each other, sums over long
// stretches hardly do. Of single batches and groups of neighbours, the largest estimate is returned, as short
// stretches underestimate slow changes. Unknown with values in less than two batches.
MeanError ErrorOfMean(std::span<const Batch> batches);
inline constexpr std::array<size_t, 3> kBatchesInGroup = {1, 4, 16};

// That of one value for each stretch of time, such as its kernels, relative to their mean squared. Unknown if
// all are 0.
MeanError RelativeErrorOfMean(std::span<const int64_t> values);

}  // namespace gpusonde::analyze
