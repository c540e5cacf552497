// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/report.h"
#include "base/result.h"

// `gpusonde analyze --part i/N -o P` and `--merge P…`: divides an analysis among the jobs of a batch system.
namespace gpusonde::analyze {

// Analyses part `part` of `parts` of the traces and writes the intermediate result to a file, completely or
// not at all. Errors: as Analyze; those of writing.
Status AnalyzePart(const std::vector<std::string>& paths, const Options& options, uint64_t part,
                   uint64_t parts, const std::string& output);

// The report that Analyze would have returned. Errors: kInvalidArgument for missing or duplicate parts and
// parts of different jobs; kCorrupt for other files; kTooNew.
Result<Report> MergeParts(const std::vector<std::string>& files, const Options& options);

}  // namespace gpusonde::analyze
