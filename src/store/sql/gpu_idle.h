// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

// Parts of SQL statements about the CPU's samples at moments at which the GPU was idle
// (model::Selection::while_gpu_idle).
namespace gpusonde::store {

// The samples of a range: rows that have time_ns, as what follows FROM.
using SamplesIn = std::function<SqlPart(const TimeRange& range)>;

struct IdleLimits {
  int64_t slice_rows = 0;  // rows of work that one statement joins with samples (ReadSlices)
  int64_t rows = 0;        // rows of work that all statements read, about; more are sampled
  int64_t seconds = 0;     // never sample fewer seconds than these, whatever they cost
};

// Samples as what follows FROM, in parts.
struct IdleSamples {
  std::vector<SqlPart> parts;
  // Only samples of one second in so many were read, because the moments of all work would take too long:
  // each stands for as many. 1: all were.
  int64_t one_second_in = 1;
};

// Those of the selection's samples at moments at which the GPU was idle. Sampled seconds are spread evenly
// over the range and follow no period: second n is sampled if the fraction of n·φ lies below 1 /
// one_second_in (a Kronecker sequence; Niederreiter 1992, section 3.1), so that equal questions have equal
// answers. Errors: those of `ask`.
Result<IdleSamples> WhileGpuIdle(const Ask& ask, const SamplesIn& samples, const model::Selection& selection,
                                 const IdleLimits& limits);

}  // namespace gpusonde::store
