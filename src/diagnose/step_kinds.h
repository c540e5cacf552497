// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/id128.h"
#include "diagnose/step_finder.h"

namespace gpusonde::diagnose {

// Steps of one type: they launch the same work.
struct StepKind {
  int64_t steps = 0;
  double total_ns = 0;
  int64_t work = 0;              // kernels and copies of all
  int64_t first_ns = INT64_MAX;  // start of the first, ns since the epoch
  int64_t last_ns = 0;           // end of the last

  double mean_ns() const { return total_ns / static_cast<double>(steps); }
  double mean_work() const { return static_cast<double>(work) / static_cast<double>(steps); }
};

// The kinds of steps that a program makes: longer steps of another kind are not slow ones, but may be why it
// takes longer. Not thread-safe.
class StepKinds {
 public:
  void Add(const StepSpan& step);

  // Those with a tenth of the steps or more, by their first step. Empty unless there are several, and the
  // longest take 1.1 times as long as the shortest.
  std::vector<StepKind> Common() const;

 private:
  std::map<Id128, StepKind> by_type_;
  int64_t steps_ = 0;
};

}  // namespace gpusonde::diagnose
