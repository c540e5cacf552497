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
  void Add(const ErrorOfSum& other, double factor);
  double variance() const { return variance_; }
  // Welch and Satterthwaite's; 1 if that of no error is known.
  double freedom() const;

 private:
  double variance_ = 0, squares_ = 0;
};

// The change of the time of kernels that can be compared one by one, as a logarithm: what they took beside
// what as many launches took before. A mean of their logarithms would be larger where they changed
// differently.
class ChangeOfMean {
 public:
  // `taken_ns`: above 0. `difference`: of the mean logarithm of durations, with the errors of both means.
  void Add(double taken_ns, double difference, const analyze::MeanError& a, const analyze::MeanError& b);

  bool empty() const { return taken_ns_ == 0; }
  double taken_ns() const { return taken_ns_; }
  // These require that something was added.
  double difference() const;
  analyze::MeanError Within() const;  // the error, as the variation within runs tells it (delta method)

  // Empty without anything to compare, or if there are several runs but their variation isn't known.
  std::optional<Ratio> Finish(double min_change, const RunsOf& runs) const;

 private:
  double Beyond(double min_change, const RunsOf& runs) const;

  double taken_ns_ = 0, before_ns_ = 0;
  ErrorOfSum error_of_taken_, error_of_before_;  // in ns
};

}  // namespace gpusonde::compare
