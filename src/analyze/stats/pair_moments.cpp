// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/pair_moments.h"

#include <algorithm>
#include <cmath>

namespace gpusonde::analyze {
namespace {

constexpr Int128 kLargest = static_cast<Int128>(~Uint128{0} >> 1);

void AddTo(Int128& sum, Int128 value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = value > 0 ? kLargest : -kLargest;
}

// Σ (a − mean of a)(b − mean of b).
double Centered(int64_t count, Int128 ab, Int128 a, Int128 b) {
  if (count == 0) return 0;
  Int128 scaled = 0;
  Int128 product = 0;
  // Exact while it fits, because the two may differ in their last digits only.
  if (!__builtin_mul_overflow(ab, Int128{count}, &scaled) && !__builtin_mul_overflow(a, b, &product) &&
      !__builtin_sub_overflow(scaled, product, &scaled))
    return static_cast<double>(scaled) / static_cast<double>(count);
  return static_cast<double>(ab) -
         static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(count);
}

}  // namespace

void PairMoments::Add(int64_t of_x, int64_t of_y) {
  ++count;
  AddTo(x, of_x);
  AddTo(y, of_y);
  AddTo(xx, Int128{of_x} * of_x);
  AddTo(yy, Int128{of_y} * of_y);
  AddTo(xy, Int128{of_x} * of_y);
}

void PairMoments::Merge(const PairMoments& other) {
  count += other.count;
  AddTo(x, other.x);
  AddTo(y, other.y);
  AddTo(xx, other.xx);
  AddTo(yy, other.yy);
  AddTo(xy, other.xy);
}

std::optional<double> Correlation(std::span<const PairMoments> groups) {
  constexpr int64_t kMinFree = 3;
  int64_t free = 1;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (const PairMoments& group : groups) {
    if (group.count == 0) continue;
    free += group.count - 1;
    xx += Centered(group.count, group.xx, group.x, group.x);
    yy += Centered(group.count, group.yy, group.y, group.y);
    xy += Centered(group.count, group.xy, group.x, group.y);
  }
  if (free < kMinFree || xx <= 0 || yy <= 0) return std::nullopt;
  return std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0);
}

}  // namespace gpusonde::analyze
