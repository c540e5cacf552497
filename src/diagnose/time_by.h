// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace gpusonde::diagnose {

// Time by the values of an enumeration, which count from 0; ns. Of an interval, or a mean over several.
template <class Key, size_t count>
struct TimeBy {
  std::array<double, count> ns{};

  double& operator[](Key key) { return ns[static_cast<size_t>(key)]; }
  double operator[](Key key) const { return ns[static_cast<size_t>(key)]; }
  double total() const {
    double sum = 0;
    for (const double part : ns) sum += part;
    return sum;
  }
  void Add(const TimeBy& other, double factor) {
    for (size_t i = 0; i < count; ++i) ns[i] += factor * other.ns[i];
  }
};

}  // namespace gpusonde::diagnose
