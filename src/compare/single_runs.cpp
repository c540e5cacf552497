// SPDX-License-Identifier: Apache-2.0
#include "compare/single_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/order_statistics.h"

namespace gpusonde::compare {
namespace {

// Of the difference of two runs.
constexpr double kAssumedVariance = 2 * SingleRuns::kAssumedDeviation * SingleRuns::kAssumedDeviation;

// The median of the distances from the median, times this, is a normal deviation.
constexpr double kNormalByMedian = 1.4826;
// Kernels that are farther from the others than so many deviations don't count towards the spread: they may
// have changed. The others' deviation is smaller by a hundredth, or with few kernels, of which some seem far
// by chance, by 3 % (simulated with 20).
constexpr double kFar = 3, kWithoutFar = 1.03;

}  // namespace

void SingleRuns::Add(double change, double variance) { changes_.push_back({change, variance}); }

analyze::MeanError SingleRuns::OfAll() { return {.variance = kAssumedVariance, .freedom = 0}; }

void SingleRuns::Finish() {
  of_each_ = OfAll();
  if (changes_.size() < kMinKernels) return;
  std::vector<double> changes, distances, variances;
  for (const Change& one : changes_) {
    changes.push_back(one.change);
    variances.push_back(one.variance);
  }
  const double middle = MedianOf(std::move(changes));
  for (const Change& one : changes_) distances.push_back(std::abs(one.change - middle));
  const double far = kFar * kNormalByMedian * MedianOf(std::move(distances));
  double count = 0, sum = 0, squares = 0;
  for (const Change& one : changes_) {
    if (std::abs(one.change - middle) > far) continue;
    ++count;
    sum += one.change - middle;
    squares += (one.change - middle) * (one.change - middle);
  }
  // At least the half around the median is kept.
  const double mean = sum / count;
  const double deviation = kWithoutFar * std::sqrt((squares - count * mean * mean) / (count - 1));
  const double largest = 2 * std::sqrt(kAssumedVariance);
  shift_ = std::clamp(middle + mean, -largest, largest);
  of_each_ = {.variance = std::clamp(deviation * deviation - MedianOf(std::move(variances)), 0.,
                                     4 * kAssumedVariance),
              .freedom = count - 1};
}

}  // namespace gpusonde::compare
