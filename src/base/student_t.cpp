// SPDX-License-Identifier: Apache-2.0
#include "base/student_t.h"

#include <cmath>
#include <numbers>

namespace gpusonde {
namespace {

constexpr double kMaxQuantile = 1e9;

}  // namespace

double NormalTail(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

double StudentTail(double t, double freedom) {
  const double z = (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
  return NormalTail(std::copysign(z, t));
}

double StudentQuantile(double tail, double freedom) {
  double low = 0, high = 1;
  while (StudentTail(high, freedom) > tail && high < kMaxQuantile) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, freedom) > tail ? low : high) = middle;
  }
  return high;
}

}  // namespace gpusonde
