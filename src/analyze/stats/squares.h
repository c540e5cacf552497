// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/int128.h"

namespace gpusonde::analyze {

// Durations of one group of kernels.
struct Sum {
  int64_t count = 0;
  Int128 total_ns = 0;

  void Add(int64_t duration_ns) {
    ++count;
    total_ns += duration_ns;
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(total_ns);
  }
  void Merge(const Sum& other) {
    count += other.count;
    total_ns += other.total_ns;
  }
};

// The sum of squares between groups, Σ nᵢ (meanᵢ − mean)², in ns².
double SquaresBetween(std::span<const Sum> groups);

// The share of a variance that a grouping explains, 0 to 1: ε² (Kelley 1935), that is η² (the share of
// squares between groups) minus what as many groups explain by chance. Of 200 durations in 128 windows,
// chance explains 64 %. 0 if there are too few values.
double VarianceExplained(double squares_between, double squares, int64_t count, int64_t groups);

}  // namespace gpusonde::analyze
