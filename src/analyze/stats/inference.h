// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/stats/log_moments.h"

// From sums to statements: these are the only places where analyses calculate with fractions, always in the
// same order, so that results are the same to the bit.
namespace gpusonde::analyze {

// Each side of a comparison needs as many: below, logarithms of durations are not near enough to normal.
inline constexpr int64_t kMinSamples = 30;
// Ratios below are not worth telling anyone.
inline constexpr double kMinRatio = 1.05;
// The share of false findings among those reported.
inline constexpr double kFalseDiscoveryRate = 0.05;

// How much longer one group of durations is than another, with its 95 % interval.
struct Ratio {
  int64_t count = 0;  // durations that were compared
  double ratio = 1;   // of geometric means
  double low = 1;
  double high = 1;
  double p = 1;  // of a ratio as large or larger where there is no difference
};

// Pools comparisons of like with like (the same kernel with the same launch shape on the same device), each
// weighted by the inverse of its variance (Welch).
class PooledRatio {
 public:
  // Passed over unless both have kMinSamples.
  void Add(const LogMoments& these, const LogMoments& those);
  bool empty() const { return weights_ == 0; }
  Ratio Finish() const;

 private:
  int64_t count_ = 0;
  double weights_ = 0;
  double weighted_ = 0;
};

// The chance that a standard normal number is above z.
double NormalTail(double z);

// Which of the tests may be reported so that at most `rate` of them are false in the mean (Benjamini and
// Hochberg 1995).
std::vector<bool> Significant(std::span<const double> p, double rate = kFalseDiscoveryRate);

}  // namespace gpusonde::analyze
