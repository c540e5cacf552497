// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

namespace gpusonde::diagnose {

// Returns the median of one value or more; of an even number, the upper of the two in the middle.
inline double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace gpusonde::diagnose
