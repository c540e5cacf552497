// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/selection.h"
#include "model/timeline.h"
#include "store/store.h"

namespace gpusonde::store {

struct TimelineCounts {
  int64_t gpu_work = 0;
  int64_t calls = 0;
  int64_t ranges = 0;
  int64_t steps = 0;
  int64_t incidents = 0;
  int64_t metric_values = 0;
};

// Passes everything that starts in the selection's time to the sink: kernels, copies, sets, calls, ranges,
// steps, incidents and values of metrics. Of the rest of the selection `process` applies to all, `device` to
// GPU work and metrics, `stream` to GPU work; others must be unset. What never ended ends with the data. Rows
// that end before they start or start before 1970 are ignored. Memory is bounded: events are read in slices
// of time. Errors: those of Store::Query and of the sink.
Result<TimelineCounts> ReadTimeline(Store& store, const model::Selection& selection,
                                    model::TimelineSink& sink);

}  // namespace gpusonde::store
