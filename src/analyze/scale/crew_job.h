// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/report.h"
#include "analyze/scale/crew.h"
#include "base/result.h"

namespace gpusonde::analyze {

// Analyze by all processes of an MPI job together; every process calls it with the same arguments. Rank 0
// gets the report, which is the same as Analyze's to the byte; the others nothing. Where one can't read its
// part all fail, and only rank 0 has a message, of the first that couldn't. A failure later is one process's
// own: then `others_wait`, and the process has to Abort. Errors: as Analyze.
//
// Traces are divided by bytes (Division). A trace that all read together is put together again by process:
// whoever has the processes of a trace gets their records from everybody, and follows them.
Result<std::optional<Report>> AnalyzeTogether(const Crew& crew, const std::vector<std::string>& paths,
                                              const Options& options, bool& others_wait);

}  // namespace gpusonde::analyze
