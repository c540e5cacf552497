// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "convert/import.h"
#include "importers/trace.h"
#include "store/recordings/recording.h"

namespace gpusonde::convert {

// What the trace says of itself. Whether it begins where its clock does is only known once all of it has been
// split into shards: what surrounds the events of a JSON trace may follow them.
Result<importers::TraceInfo> ReadInfo(const std::string& path, const ImportOptions& options);

// Sends the rows of one trace to `sink`. `info` is of ReadInfo. Errors: those of ImportTraces, and of `sink`.
Result<ImportSummary::Trace> ImportTrace(const std::string& path, const importers::TraceInfo& info,
                                         const ImportOptions& options, const store::BatchSink& sink);

}  // namespace gpusonde::convert
