// SPDX-License-Identifier: Apache-2.0
#include "model/launch_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gpusonde::model {
namespace {

constexpr double kNormalQuantile = 1.959964;  // 97.5 % of a normal distribution lie below
constexpr double kLargestNs = 9.2e18;         // what int64_t holds

double Positive(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

// The variance of a sum, with that of one more launch like those sampled.
double WithOneMore(double variance, double sum) {
  return sum > 0 ? variance * (1 + variance / (sum * sum)) : variance;
}

}  // namespace

double ShareVariance(int64_t total_ns, const LaunchSums& part, const LaunchSums& whole) {
  const double whole_ns = Positive(whole.time_ns);
  if (whole_ns <= 0 || total_ns <= 0) return 0;
  const double share = std::min(1.0, Positive(part.time_ns) / whole_ns);
  // Σ (1-p)/p² e² falls into the launches of s, where e = d (1 - R), and the others, where e = - d R.
  const double rest = Positive(whole.variance_ns2 - part.variance_ns2);
  const double squares =
      (1 - share) * (1 - share) * WithOneMore(Positive(part.variance_ns2), Positive(part.time_ns)) +
      share * share * WithOneMore(rest, whole_ns - Positive(part.time_ns));
  const double scale = static_cast<double>(total_ns) / whole_ns;
  return Positive(scale * scale * squares);
}

int64_t IntervalNs(double variance_ns2) {
  return static_cast<int64_t>(
      std::min(kLargestNs, std::ceil(kNormalQuantile * std::sqrt(Positive(variance_ns2)))));
}

std::vector<int64_t> Apportion(int64_t total, std::span<const double> weights) {
  std::vector<int64_t> parts(weights.size(), 0);
  total = std::max<int64_t>(total, 0);
  // 64 bits of mantissa: a quota of any int64_t is exact to a unit.
  long double whole = 0;
  for (const double weight : weights) whole += Positive(weight);
  if (whole <= 0) {
    parts.front() = total;
    return parts;
  }
  std::vector<long double> remainders(weights.size());
  int64_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const long double quota = static_cast<long double>(total) * Positive(weights[i]) / whole;
    // Rounding must never hand out more than the total.
    parts[i] = std::min(left, static_cast<int64_t>(std::floor(quota)));
    remainders[i] = quota - static_cast<long double>(parts[i]);
    left -= parts[i];
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return remainders[i]; });
  // Only rounding errors can leave more units than there are parts.
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++parts[order[i]];
  return parts;
}

}  // namespace gpusonde::model
