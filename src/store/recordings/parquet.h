// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"

namespace gpusonde::store {

struct ParquetSummary {
  int64_t tables = 0;
  int64_t rows = 0;
};

// Writes the tables of recordings as Parquet files, compressed with zstd: FOLDER/TABLE.parquet, also those
// without rows. The folder must exist; its path is absolute. Rows are those that queries see: `kernels` also
// has those in packs, so there is no kernel_packs; batches, which only our own stores need, are left out.
//
// The selection's process, device and stream apply to tables with such a column (where it may be null, rows
// without one stay), its time to facts, by time_ns or start_ns; the rest of it must be unset.
// Errors: those of OpenRecordings; kOutOfSpace, kIo.
Result<ParquetSummary> WriteParquet(const std::vector<std::string>& recordings,
                                    const model::Selection& selection, const std::string& folder);

}  // namespace gpusonde::store
