// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/inference.h"

#include <algorithm>
#include <cmath>

namespace gpusonde::analyze {
namespace {

constexpr double kTwoSided95 = 1.959964;

}  // namespace

void PooledRatio::Add(const LogMoments& these, const LogMoments& those) {
  if (these.count < kMinSamples || those.count < kMinSamples) return;
  const auto count = static_cast<double>(these.count);
  const double taken_ns = count * std::exp2(these.Mean() / kLogUnits);
  const double expected_ns = count * std::exp2(those.Mean() / kLogUnits);
  taken_ns_ += taken_ns;
  expected_ns_ += expected_ns;
  variance_of_taken_ += taken_ns * taken_ns * these.Variance() / count;
  variance_of_expected_ += expected_ns * expected_ns * those.Variance() / static_cast<double>(those.count);
  count_ += these.count;
}

Ratio PooledRatio::Finish() const {
  if (empty()) return {};
  const double variance =
      variance_of_taken_ / (taken_ns_ * taken_ns_) + variance_of_expected_ / (expected_ns_ * expected_ns_);
  return RatioOf(count_, kLogUnits * std::log2(taken_ns_ / expected_ns_), std::sqrt(variance));
}

Ratio RatioOf(int64_t count, double units, double error) {
  const auto ratio = [](double of) { return std::exp2(of / kLogUnits); };
  return {.count = count,
          .ratio = ratio(units),
          .low = ratio(units - kTwoSided95 * error),
          .high = ratio(units + kTwoSided95 * error),
          .p = NormalTail(units / error)};
}

std::vector<bool> Significant(std::span<const double> p, double rate) {
  std::vector<double> sorted(p.begin(), p.end());
  std::ranges::sort(sorted);
  double limit = -1;
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] <= rate * static_cast<double>(i + 1) / static_cast<double>(sorted.size()))
      limit = sorted[i];
  std::vector<bool> significant;
  for (const double one : p) significant.push_back(one <= limit);
  return significant;
}

}  // namespace gpusonde::analyze
