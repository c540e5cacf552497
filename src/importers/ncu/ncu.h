// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "importers/stream/byte_source.h"
#include "importers/trace.h"

// The output of `ncu --csv`: a metric per row (its pages of details) or a metric per column (`--page raw`);
// output of the profiled program in between is skipped. Tested with the raw page of Nsight Compute 2025.3;
// the others are written from the documentation.
namespace gpusonde::importers::ncu {

// Whether a file that begins so is Nsight Compute's: it has a row that names the columns.
bool IsNcu(std::string_view head);

Result<std::unique_ptr<Trace>> OpenNcu(std::unique_ptr<ByteSource> source, const OpenOptions& options);

}  // namespace gpusonde::importers::ncu
