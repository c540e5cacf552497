// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyze/stats/batch_means.h"

namespace gpusonde::compare {

// How much runs of a program differ where each side has one run, so that it can't be measured. All changes
// are differences of logarithms.
//
// What all kernels do together (clocks, temperature) can't be told from a change of the program, so a size of
// it is assumed. What a kernel does apart from that (where memory lies, what runs beside it) shows in how
// much kernels differ from each other: a kernel that changed stands out, and a few of them don't matter for a
// robust measure.
class SingleRuns {
 public:
  // A kernel's change from A to B, and the variance of its error within the runs.
  void Add(double change, double variance);
  // Call it once after all.
  void Finish();

  // What kernels changed together, as far as it may be chance: at most two assumed deviations.
  double shift() const { return shift_; }
  // The error of a kernel's change beside the shift.
  const analyze::MeanError& of_each() const { return of_each_; }
  // That of all kernels together.
  static analyze::MeanError OfAll();

  // The standard deviation of one run from others. Chosen: what a real GPU does isn't measured yet.
  static constexpr double kAssumedDeviation = 0.01;
  // With fewer kernels their spread isn't known, and the assumption is all there is.
  static constexpr size_t kMinKernels = 8;

 private:
  struct Change {
    double change, variance;
  };
  std::vector<Change> changes_;
  double shift_ = 0;
  analyze::MeanError of_each_;
};

}  // namespace gpusonde::compare
