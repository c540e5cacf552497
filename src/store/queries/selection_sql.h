// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

// Which columns rows of CPU time must have.
enum class Detail {
  kThreads,  // process and tid; stack is null
  kStacks,   // stack as well
};

// CPU time as what follows FROM: rows of start_ns, length_ns, process, tid, stack, state, count, weight_ns
// and variance_ns2. It is the union of several parts, since a statement over all of them might not fit into
// memory.
struct CpuTime {
  std::vector<SqlPart> parts;
  int64_t one_second_in = 1;  // model::Profile::one_second_in
};

// CPU time in the selection. A row is a sample, of length 0, or a sum over a time: of a window where the
// store has them (store/rollups/sample_windows.h), with while_gpu_idle of a sampled second, which stands for
// those around it (store/sql/gpu_idle.h). A filter is matched against names as model::FrameName displays
// them. Errors: those of Store::Query.
Result<CpuTime> CpuTimeIn(Store& store, const model::Selection& selection, Detail detail);

// The same without windows.
Result<CpuTime> CpuSamplesIn(Store& store, const model::Selection& selection);

}  // namespace gpusonde::store
