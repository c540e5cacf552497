// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/report.h"
#include "base/result.h"

// `gpusonde analyze --part i/N -o P` and `--merge P…`: a job divided among the jobs of a batch system.
namespace gpusonde::analyze {

// Reads part `part` of `parts` of the traces and writes what is known then to a file, whole or not at all.
// Errors: as Analyze; those of writing.
Status AnalyzePart(const std::vector<std::string>& paths, const Options& options, uint64_t part,
                   uint64_t parts, const std::string& output);

// The report that Analyze would have given. Errors: kInvalidArgument for parts that are missing, there twice,
// or of different jobs; kCorrupt for files that are no parts; kTooNew.
Result<Report> MergeParts(const std::vector<std::string>& files, const Options& options);

}  // namespace gpusonde::analyze
