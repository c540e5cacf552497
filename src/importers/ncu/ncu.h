// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "importers/stream/byte_source.h"
#include "importers/trace.h"

// What Nsight Compute prints with `ncu --csv`: a metric a row (its pages of details), or a metric a column
// (`--page raw`); what the profiled program printed between is passed over. Written after its documents: no
// real file was at hand.
namespace gpusonde::importers::ncu {

// Whether a file that begins so is one: a row that names the columns is in it.
bool IsNcu(std::string_view head);

Result<std::unique_ptr<Trace>> OpenNcu(std::unique_ptr<ByteSource> source, const OpenOptions& options);

}  // namespace gpusonde::importers::ncu
