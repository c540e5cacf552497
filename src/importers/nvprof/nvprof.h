// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "importers/sqlite/table.h"
#include "importers/trace.h"

// Databases written by nvprof (`nvprof -o FILE`, CUDA 5 to 11, for the Visual Profiler).
//
// Written after other readers (PyTorch's torch.autograd.profiler_legacy) and CUPTI's records, and not tested
// with a real nvprof file; docs/analyze.md tells users so.
namespace gpusonde::importers::nvprof {

// Whether the database is one, from the names of its tables.
bool IsNvprof(std::span<const std::string> table_names);

Result<std::unique_ptr<Trace>> OpenNvprof(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                          const OpenOptions& options);

}  // namespace gpusonde::importers::nvprof
