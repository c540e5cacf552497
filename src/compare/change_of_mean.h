// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyze/stats/batch_means.h"
#include "compare/between_runs.h"
#include "compare/comparison.h"

namespace gpusonde::compare {

// What is known of the variation from run to run.
struct RunsOf {
  bool several = false;  // three or more, so that it should be known
  VariationOfRuns variation;
  TypicalVariance typical;  // of the runs of kernels
  // Else, of SingleRuns: what all kernels together may have changed by chance, how uncertain that is, and
  // what one does apart from it.
  double shift = 0;
  analyze::MeanError of_all;
  analyze::MeanError of_each;
};

// The variance of a sum of independent errors.
class ErrorOfSum {
 public:
  void Add(const analyze::MeanError& error, double factor = 1);
  double variance() const { return variance_; }
  // Welch and Satterthwaite's; 1 if that of no error is known.
  double freedom() const;

 private:
  double variance_ = 0, squares_ = 0;
};

// The change of a logarithm, as a mean weighted by time over kernels that can be compared one by one.
class ChangeOfMean {
 public:
  void Add(double weight, double difference, const analyze::MeanError& a, const analyze::MeanError& b);

  bool empty() const { return weight_ == 0; }
  double weight() const { return weight_; }
  // These require a weight.
  double difference() const { return weighted_ / weight_; }
  analyze::MeanError Within() const;  // the error, as the variation within runs tells it

  // Empty without anything to compare, or if there are several runs but their variation isn't known.
  std::optional<Ratio> Finish(double min_change, const RunsOf& runs) const;

 private:
  double Beyond(double min_change, const RunsOf& runs) const;

  double weight_ = 0, weighted_ = 0;
  ErrorOfSum error_;
};

}  // namespace gpusonde::compare
