// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

namespace gpusonde::diagnose {

// The next value of a one-sided CUSUM (Page 1954), which never falls below 0.
inline double Grow(double cusum, double addend) { return std::max(0.0, cusum + addend); }

// What a block of consecutive addends does to any CUSUM, so that a block that is drawn many times is summed
// once. The value after each addend is the larger of two: the value before the block plus the addends so far,
// and the value of a CUSUM that began the block at 0.
struct CusumBlock {
  double sum = 0, from_zero = 0;                          // after the block
  double highest_sum = -HUGE_VAL, highest_from_zero = 0;  // within it

  void Add(double addend) {
    sum += addend;
    from_zero = Grow(from_zero, addend);
    highest_sum = std::max(highest_sum, sum);
    highest_from_zero = std::max(highest_from_zero, from_zero);
  }
};

// A CUSUM over blocks, and its highest value so far.
struct BlockwiseCusum {
  double value = 0, highest = 0;

  void Add(const CusumBlock& block) {
    highest = std::max({highest, value + block.highest_sum, block.highest_from_zero});
    value = std::max(value + block.sum, block.from_zero);
  }
};

}  // namespace gpusonde::diagnose
