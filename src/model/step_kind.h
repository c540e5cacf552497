// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gpusonde::model {

// Steps of one type: they launch the same work.
struct StepKind {
  int64_t steps = 0;
  double total_ns = 0;
  int64_t work = 0;              // kernels and copies of all; 0 where it isn't known
  int64_t first_ns = INT64_MAX;  // start of the first, ns since the epoch
  int64_t last_ns = 0;           // end of the last

  double mean_ns() const { return total_ns / static_cast<double>(steps); }
  double mean_work() const { return static_cast<double>(work) / static_cast<double>(steps); }
};

// Returns those with a tenth of all `steps` or more, by their first step. Empty unless there are several, and
// the longest take 1.1 times as long as the shortest.
std::vector<StepKind> CommonKinds(std::vector<StepKind> kinds, int64_t steps);

}  // namespace gpusonde::model
