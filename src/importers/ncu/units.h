// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde::importers::ncu {

// Normalises units of Nsight Compute so that values become integers of one unit: "Kbyte" and "Mbyte" of one
// metric become bytes. A value in the written unit, times 10^exponent, is a number of 10^-decimals of `name`.
struct Unit {
  std::string name;  // "byte", "ns", "Hz", "byte/s", "cycle", "%", …; unknown units stay as they are
  int exponent = 0;  // decimals included
  int decimals = 0;  // DecimalsOf(name)
};

// The unit of a column or row: removes decimal prefixes (n, u, m, K, M, G, T, P); times and rates are per s.
Unit NormaliseUnit(std::string_view written);

// The decimals kept for values in a normalised unit: 3 for counts and rates, which are large and mostly
// integers; 6 for percentages and ratios.
int DecimalsOf(std::string_view unit);

}  // namespace gpusonde::importers::ncu
