// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyze/analyzer.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// Whether times of a format's traces without an event can mean that nothing was recorded. Recordings have
// more than what is analysed, and the clocks of nvprof's databases differ.
bool MayBeUnrecorded(importers::TraceFormat format);

// Finds the times of a whole trace at which nothing was recorded. If there may be any, the trace is read
// again in detail, as operators, Python functions and calls of the operating system count as well. Errors:
// those of reading.
Status ConfirmUnrecorded(const std::string& path, importers::TraceFormat format, const Options& options,
                         TraceState& state);

}  // namespace gpusonde::analyze
