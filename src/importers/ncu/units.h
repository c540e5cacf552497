// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde::importers::ncu {

// What Nsight Compute writes in one unit, as whole numbers of another: "Kbyte" and "Mbyte" of one metric in
// two rows become bytes. A value in the unit that was written, times 10^exponent, is a number of
// 10^-decimals of `name`.
struct Unit {
  std::string name;  // "byte", "ns", "Hz", "byte/s", "cycle", "%", …; one that isn't known stays as it is
  int exponent = 0;  // decimals included
  int decimals = 0;  // DecimalsOf(name)
};

// The unit of a column or row: prefixes of ten (n, u, m, K, M, G, T, P) go, times and rates are per s. Not
// confirmed by a file of Nsight Compute's: from its documents only.
Unit NormaliseUnit(std::string_view written);

// How many decimals are kept of values in a normalised unit: 3 of what is counted or a rate, which is large
// and mostly whole; 6 of percentages and ratios.
int DecimalsOf(std::string_view unit);

}  // namespace gpusonde::importers::ncu
