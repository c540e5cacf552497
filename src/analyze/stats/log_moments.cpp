// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/log_moments.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/int128.h"

namespace gpusonde::analyze {
namespace {

constexpr int kTableBits = 10;

// log2(1 + x) for the middle x of each of 1,024 parts of an octave, in units.
std::array<uint16_t, 1 << kTableBits> MakeTable() {
  std::array<uint16_t, 1 << kTableBits> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(table.size());
    table[i] = static_cast<uint16_t>(std::lround(std::log2(1 + x) * kLogUnits));
  }
  return table;
}

}  // namespace

int32_t FixedLog2(int64_t duration_ns) {
  static const std::array<uint16_t, 1 << kTableBits> table = MakeTable();
  if (duration_ns <= 1) return 0;
  const auto value = static_cast<uint64_t>(duration_ns);
  const int exponent = 63 - std::countl_zero(value);
  const uint64_t mantissa = value << (63 - exponent) << 1;  // without its leading one
  // A power of two is itself, not the middle of a part.
  const uint16_t fraction = mantissa == 0 ? 0 : table[mantissa >> (64 - kTableBits)];
  return exponent * kLogUnits + fraction;
}

double LogMoments::Mean() const {
  return count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0;
}

double LogMoments::Variance() const {
  constexpr double kRounding = 1.0 / 12;  // the variance of a number spread evenly over one unit
  if (count < 2) return kRounding;
  // n·Σx² − (Σx)², exactly.
  const Int128 scaled = Int128{count} * squares - Int128{sum} * sum;
  const double n = static_cast<double>(count);
  return std::max(kRounding, static_cast<double>(scaled) / (n * (n - 1)));
}

}  // namespace gpusonde::analyze
