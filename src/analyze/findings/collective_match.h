// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {

// When a rank was in a collective, by its trace's clock.
struct Visit {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  size_t index = 0;  // of its kernel in the rank's RankResult::collectives
};

// Collectives of one kernel name that the same ranks ran together.
struct MatchedCollectives {
  importers::ProcessGroup group;           // identity 0 if the traces don't name it
  std::vector<size_t> ranks;               // indices into Job::ranks, ascending; at least two
  std::vector<std::vector<Visit>> visits;  // as ranks; the i-th of each belong together
};

// Finds out which communication kernels of different ranks belong together.
//
// If the traces name the process group, only its ranks are matched: by sequence number or, without one, in
// order. Otherwise ranks with kernels of one name form a group if the ends of their kernels are a constant
// time apart, since all ranks leave a collective together. In order means with the shift at which the ends
// are closest to a constant time apart, because a trace may begin some collectives later.
//
// Sends and receives count only if a whole group takes part, as many ranks as it has, or all ranks of the job
// if the group is unknown; without sequence numbers, ranks that leave them together take part.
std::vector<MatchedCollectives> MatchCollectives(const Job& job);

// How the visits of two ranks fit together.
struct Fit {
  int64_t shift = 0;        // b[i + shift] belongs to a[i]
  int64_t offset_ns = 0;    // the median of b's end minus a's
  int64_t residual_ns = 0;  // how near to that three quarters of the differences are
};

// The best fit, of shifts up to 32, of at most 64 visits that are evenly distributed. Shifts whose residuals
// are about as small, as between regular steps, are told apart by the smaller offset. Requires that neither
// is empty.
Fit BestFit(std::span<const Visit> a, std::span<const Visit> b);

// The value of rank ⌊(count − 1) · quarters / 4⌋; 0 of nothing. Permutes the values.
int64_t QuartileOf(std::vector<int64_t>& values, size_t quarters);
// Of an even number, the lower of the two in the middle.
inline int64_t LowerMedianOf(std::vector<int64_t>& values) { return QuartileOf(values, 2); }
// The median of b's ends minus a's, and how near to it three quarters of the differences are: of ranks that
// run half of their kernels together, half of the ends are equal. Permutes the differences.
Fit FitOf(std::vector<int64_t>& differences);

}  // namespace gpusonde::analyze
