// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/clean_steps.h"
#include "diagnose/cusum.h"

namespace gpusonde::diagnose {

// The detector's CUSUMs: of the deviations of steps from what is usual, for small and for large shifts; and
// of the share of steps in the tail.
struct Cusums {
  double small = 0, large = 0, tail = 0;

  void Add(const Cusums& addends) {
    small = Grow(small, addends.small);
    large = Grow(large, addends.large);
    tail = Grow(tail, addends.tail);
  }
};

// What clean steps hardly ever exceed. Those of the CUSUMs come from a circular block bootstrap (Politis and
// Romano 1992) of a program's clean steps: steps that vary in clusters need a larger shift to be called slow.
// Those of means come from the variation of the means of 1, 2, 4, … clean steps. Deterministic: the random
// generator has a fixed seed. Immutable.
class Thresholds {
 public:
  // Requires kDetector.baseline.learn_steps among the newest clean steps.
  explicit Thresholds(const CleanSteps& clean);

  // Whether enough steps were learnt since.
  bool AreOutdated(const CleanSteps& clean) const;

  // What a step adds to the CUSUMs. `log_ratio`: the logarithm of its length over the median of its type and
  // size; `ratio`: its length over their mean.
  Cusums AddendsOf(double log_ratio, double ratio) const;
  bool AreExceededBy(const Cusums& cusums) const;
  // Whether a CUSUM of deviations is on its way to its threshold.
  bool AreNearedBy(const Cusums& cusums) const;

  // Whether hardly any clean step is as long.
  bool IsInTail(double ratio) const { return ratio > tail_ratio_; }
  double longest_ratio() const { return ratios_.back(); }
  // The share of clean steps with a larger ratio.
  double ShareAbove(double ratio) const;
  // The standard deviation of the mean ratio of so many consecutive clean steps, and the highest such mean.
  // In a program that drifts over seconds, means vary as much as single steps do.
  double SpreadOf(size_t steps) const;
  double HighestMeanOf(size_t steps) const;

 private:
  void SetCusums(const CleanSteps& clean, double caution);
  void SetMeans(const CleanSteps& clean, double caution);

  size_t learnt_ = 0;           // until now
  double scale_ = 0;            // of deviations: MAD as a standard deviation
  std::vector<double> ratios_;  // of clean steps, sorted
  double tail_ratio_ = 0;
  Cusums cusums_;
  std::vector<double> spreads_, highest_;  // by the logarithm of the number of steps
};

}  // namespace gpusonde::diagnose
