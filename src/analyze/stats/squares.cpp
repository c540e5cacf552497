// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/squares.h"

#include <algorithm>

namespace gpusonde::analyze {

double SquaresBetween(std::span<const Sum> groups) {
  Sum all;
  for (const Sum& group : groups) all.Merge(group);
  if (all.count == 0) return 0;
  // Relative to an integer near the mean, so that the subtraction at the end is small.
  const Int128 center = all.total_ns / all.count;
  double squares = 0;
  for (const Sum& group : groups) {
    if (group.count == 0) continue;
    const auto off = static_cast<double>(group.total_ns - center * group.count);
    squares += off * off / static_cast<double>(group.count);
  }
  const auto rest = static_cast<double>(all.total_ns - center * all.count);
  return std::max(0.0, squares - rest * rest / static_cast<double>(all.count));
}

double VarianceExplained(double squares_between, double squares, int64_t count, int64_t groups) {
  if (squares <= 0 || count <= groups || groups < 2) return 0;
  const double within = (squares - squares_between) / static_cast<double>(count - groups);
  return std::clamp(1 - within * static_cast<double>(count - 1) / squares, 0.0, 1.0);
}

}  // namespace gpusonde::analyze
