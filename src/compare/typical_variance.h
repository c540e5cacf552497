// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/stats/batch_means.h"

namespace gpusonde::compare {

// What the variances of many kernels have in common, each of which is known from a few runs only: as what
// they vary by is alike, each is better known together with the others (an empirical Bayes estimate: Smyth
// 2004, "Linear models and empirical Bayes methods", section 6.2).
class TypicalVariance {
 public:
  // A kernel's variance, with its degrees of freedom. Those without either don't count.
  void Add(double variance, double freedom);
  // Call it once after all. With fewer than kMinKernels nothing is known.
  void Finish();

  // How much one more variance that is alike is worth, in degrees of freedom: 0 if kernels are too different,
  // at most kMaxFreedom.
  double freedom() const { return freedom_; }
  double variance() const { return variance_; }
  // The variance of a kernel together with what is typical.
  analyze::MeanError Moderate(const analyze::MeanError& own) const;

  static constexpr size_t kMinKernels = 8;
  static constexpr double kMaxFreedom = 100;

 private:
  std::vector<analyze::MeanError> all_;
  double variance_ = 0, freedom_ = 0;
};

}  // namespace gpusonde::compare
