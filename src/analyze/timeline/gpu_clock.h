// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

// How far a GPU's clock is ahead of the CPU's in a trace that doesn't convert one to the other; 0 if less
// than 100 µs behind and less than a second ahead, which launches that wait can explain. No launch reaches
// the GPU before its call begins, and the fastest do within µs, so it is the first percentile of the times
// from call to start; the shortest latency is then about 0. Events and calls are joined by correlation id
// only, as the clocks say nothing. Errors: those of temporary files.
Result<int64_t> EstimateGpuClock(const ProcessRecords& process);

}  // namespace gpusonde::analyze
