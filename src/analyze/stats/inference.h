// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/stats/log_moments.h"
#include "base/student_t.h"

// Turns sums into statements. Only here do analyses calculate with floating point, always in the same order,
// so that results are identical to the bit.
namespace gpusonde::analyze {

// The minimum for each side of a comparison: with fewer, the mean of logarithms isn't close enough to normal.
inline constexpr int64_t kMinSamples = 30;
// Smaller ratios are not worth reporting.
inline constexpr double kMinRatio = 1.05;
// The share of false findings among those reported.
inline constexpr double kFalseDiscoveryRate = 0.05;

// How much longer one group of durations is than another, with the 95 % interval.
struct Ratio {
  int64_t count = 0;  // durations that were compared
  double ratio = 1;   // of geometric means
  double low = 1;
  double high = 1;
  double p = 1;  // of a ratio as large or larger where there is no difference
};

// The ratio whose logarithm is `units` of 1/kLogUnits with this standard error, above 0.
Ratio RatioOf(int64_t count, double units, double error);

// Pools comparisons of like with like (the same kernel with the same launch shape on the same device): the
// time that these durations took beside what as many of those take. Weighted by how well each is known, the
// ratio of a few would be taken for that of all where they differ. The error is Welch's, by the delta method.
class PooledRatio {
 public:
  // Skipped unless both have kMinSamples.
  void Add(const LogMoments& these, const LogMoments& those);
  bool empty() const { return count_ == 0; }
  Ratio Finish() const;

 private:
  int64_t count_ = 0;
  double taken_ns_ = 0;
  double expected_ns_ = 0;
  double variance_of_taken_ = 0;  // in ns² of logarithms in units
  double variance_of_expected_ = 0;
};

// Which tests to report so that on average at most `rate` of them are false (Benjamini and Hochberg 1995).
std::vector<bool> Significant(std::span<const double> p, double rate = kFalseDiscoveryRate);

}  // namespace gpusonde::analyze
