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

// Analyze by all processes of an MPI job; each calls it with the same arguments and a loaded crew, which it
// joins while it reads. Rank 0 gets the report, identical to Analyze's byte for byte; the others get nothing.
// If a rank can't read its part, all fail and only rank 0 has a message, that of the first one that failed. A
// later failure concerns one process only: then `others_wait` is set, and the process has to call Abort.
// Errors: as Analyze.
//
// Traces are divided by bytes (Division). A trace that all ranks read together is joined by process: the
// owner of a process gets its records from all ranks and builds its timeline.
Result<std::optional<Report>> AnalyzeTogether(Crew& crew, const std::vector<std::string>& paths,
                                              const Options& options, bool& others_wait);

}  // namespace gpusonde::analyze
