// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/stats/batch_means.h"
#include "compare/run.h"
#include "compare/typical_variance.h"

namespace gpusonde::compare {

// How much a quantity varies from run to run, pooled over the sides of a comparison: each run about the mean
// of its side, as a difference of logarithms. Assumes that both sides vary equally.
class VariationOfRuns {
 public:
  struct Value {
    double value = 0;
    double weight = 0;  // in the mean of its side
  };
  void AddSide(std::span<const Value> runs);

  // Of the difference between the means of the sides; its freedom is 0 with less than three runs, or less
  // than one of a side. `typical`: of what varies alike.
  analyze::MeanError Error(const TypicalVariance& typical = {}) const;
  // The standard deviation of one run; empty where Error is unknown.
  std::optional<double> Deviation() const;
  double freedom() const { return freedom_; }

 private:
  double squares_ = 0, expected_ = 0;  // of deviations, and how many variances they are on average
  double of_means_ = 0;                // the variance of the difference, in variances of a run
  double freedom_ = 0;
  int sides_ = 0;
};

// The runs of a side and what they are together: sums of amounts, means of times.
struct Side {
  explicit Side(std::vector<Run> all);

  std::vector<Run> runs;
  Run together;
};

// How far a run is from all runs together: the time that launches take in all of them, and what as many take
// in this run.
struct Deviation {
  double usual_ns = 0, taken_ns = 0;

  void Add(const Deviation& other) {
    usual_ns += other.usual_ns;
    taken_ns += other.taken_ns;
  }
  bool known() const { return usual_ns > 0; }
  double ratio() const { return taken_ns / usual_ns; }  // requires known
};
using Deviations = std::vector<Deviation>;  // by run

// Of the launches of a kernel (or the ranges of a phase), each compared with those of equal shape.
// `together`: the kernel in all runs. `usual_ns_of`: of a shape; 0: it is left out.
Deviations DeviationsOf(std::span<const Run> runs, Kernels Run::* which, const std::string& name,
                        const Kernel& together, const std::function<double(uint32_t shape)>& usual_ns_of);

// The variation of the durations of kernels, or of phases, from run to run.
class DurationsOfRuns {
 public:
  DurationsOfRuns(const Side& a, const Side& b, Kernels Run::* which) : a_(a), b_(b), which_(which) {}

  // Of one kernel: of the shapes that both sides launch, or of each side's own if they have none in common.
  // Counts towards OfAll in the first case.
  VariationOfRuns OfKernel(const std::string& name, bool other_shapes);
  VariationOfRuns OfAll() const;

 private:
  const Side& a_;
  const Side& b_;
  Kernels Run::* which_;
  Deviations all_a_, all_b_;
};

}  // namespace gpusonde::compare
