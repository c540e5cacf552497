// SPDX-License-Identifier: Apache-2.0
#include "model/moments.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gpusonde::model {
namespace {

Int128 FloorDivide(Int128 value, Int128 by) {
  const Int128 quotient = value / by;
  return quotient - ((value % by != 0 && value < 0) ? 1 : 0);
}

// The largest whole number whose square is not above `value`, by binary digits.
Uint128 SquareRoot(Uint128 value) {
  Uint128 root = 0;
  const auto high = static_cast<uint64_t>(value >> 64);
  const int bits =
      high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<uint64_t>(value));
  for (int bit = bits / 2; bit >= 0; --bit) {
    const Uint128 tried = root | (Uint128{1} << bit);
    if (tried <= value / tried) root = tried;
  }
  return root;
}

int64_t Clamp(Int128 value) {
  constexpr Int128 kLowest = std::numeric_limits<int64_t>::min();
  constexpr Int128 kHighest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, kLowest, kHighest));
}

// Beyond this Σx², four times the deviations no longer fit 127 bits.
constexpr int kExactBits = 124;

bool IsExact(Uint128 squares) { return squares >> kExactBits == 0; }

// The precision left then: 64 bits of mantissa of the sums.
long double ApproximateDeviations(Int128 sum, Uint128 squares, int64_t count) {
  const auto total = static_cast<long double>(sum);
  return std::max(0.0L, static_cast<long double>(squares) - total * total / static_cast<long double>(count));
}

}  // namespace

int64_t Moments::total() const { return Clamp(sum_); }

int64_t Moments::Mean() const {
  return count_ == 0 ? 0 : Clamp(FloorDivide(2 * sum_ + count_, 2 * Int128{count_}));
}

// With q = ⌊Σx / n⌋ and r = Σx − nq: Σ(x − q)² = Σx² − q(Σx + r), and Σ(x − mean)² = Σ(x − q)² − r²/n, where
// 0 ≤ r < n. No intermediate is larger than Σx².
Uint128 Moments::SquaredDeviations() const {
  if (count_ == 0) return 0;
  if (!IsExact(squares_)) return static_cast<Uint128>(ApproximateDeviations(sum_, squares_, count_));
  const Int128 floor = FloorDivide(sum_, count_);
  const Int128 rest = sum_ - floor * count_;
  const Int128 about_floor = static_cast<Int128>(squares_) - floor * (sum_ + rest);
  const Int128 correction = (rest * rest + count_ - 1) / count_;
  return about_floor > correction ? static_cast<Uint128>(about_floor - correction) : 0;
}

int64_t Moments::StandardDeviation() const {
  if (count_ < 2) return 0;
  if (!IsExact(squares_))
    return std::llround(
        std::sqrt(ApproximateDeviations(sum_, squares_, count_) / static_cast<long double>(count_ - 1)));
  const Int128 floor = FloorDivide(sum_, count_);
  const Int128 rest = sum_ - floor * count_;
  const Int128 about_floor = static_cast<Int128>(squares_) - floor * (sum_ + rest);
  // ⌊4 · variance⌋; the root of it, halved and rounded, is the rounded root of the variance.
  const Int128 correction = (4 * rest * rest + count_ - 1) / count_;
  const Int128 four_deviations = 4 * about_floor - correction;
  if (four_deviations <= 0) return 0;
  const Uint128 root = SquareRoot(static_cast<Uint128>(four_deviations / (count_ - 1)));
  return Clamp(static_cast<Int128>((root + 1) / 2));
}

}  // namespace gpusonde::model
