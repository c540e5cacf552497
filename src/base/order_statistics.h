// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace gpusonde {

// Returns the value that would be at `rank` if the values were sorted, in linear time. Permutes the values.
// Requires that `rank` is less than their number.
template <class Value>
Value ValueOfRank(std::vector<Value>& values, size_t rank) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::ranges::nth_element(values, at);
  return *at;
}

// Returns the median of one value or more; of an even number, the upper of the two in the middle.
template <class Value>
Value MedianOf(std::vector<Value> values) {
  return ValueOfRank(values, values.size() / 2);
}

}  // namespace gpusonde
