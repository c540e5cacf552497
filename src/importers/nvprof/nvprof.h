// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "importers/sqlite/table.h"
#include "importers/trace.h"

// Databases that nvprof wrote (`nvprof -o FILE`, CUDA 5 to 11, for the Visual Profiler).
//
// Written after what others read from them (PyTorch's torch.autograd.profiler_legacy, CUPTI's records) and
// not confirmed by a file of nvprof's own: docs/analyze.md says so to whoever uses it.
namespace gpusonde::importers::nvprof {

// Whether the database is one, from the names of its tables.
bool IsNvprof(std::span<const std::string> table_names);

Result<std::unique_ptr<Trace>> OpenNvprof(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                          const OpenOptions& options);

}  // namespace gpusonde::importers::nvprof
