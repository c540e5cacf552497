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

// CPU time in the selection, as what follows FROM: rows of start_ns, length_ns, process, tid, stack, count,
// weight_ns and variance_ns2. A row is a sample, of length 0, or, where the store has them, the sum of a
// window (store/rollups/sample_windows.h); with while_gpu_idle always a sample. A filter is matched against
// names as model::FrameName displays them. The answer is the union of several parts, since a statement over
// all of them might not fit into memory. Errors: those of Store::Query.
Result<std::vector<SqlPart>> CpuTimeIn(Store& store, const model::Selection& selection, Detail detail);

// The same from samples only.
Result<std::vector<SqlPart>> CpuSamplesIn(Store& store, const model::Selection& selection);

// A selection's `filter` and what it is compared with.
std::string AsciiLower(std::string text);

}  // namespace gpusonde::store
