// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/report.h"

#include "analyze/trace_state.h"
#include "importers/trace.h"

// From states to the lines of a report: the only place where sums become means and quantiles.
namespace gpusonde::analyze {

TraceLine MakeTraceLine(const std::string& path, const importers::TraceInfo& info, const TraceState& state);

// Why a trace is not all there.
void AddNotes(size_t trace, const importers::TraceInfo& info, const TraceState& state,
              std::vector<Note>& notes);

// How many durations are far out (Tukey's fence: above the third quartile by three times the distance between
// the quartiles) and clearly slower than the middle: short kernels have quartiles a few ns apart.
int64_t CountOutliers(const model::Sketch& durations);

DurationLine MakeDurationLine(std::string name, const Durations& durations);

// One line per name that has durations, by total falling, ties by the names' bytes.
std::vector<DurationLine> MakeDurationLines(const NameTable& names, std::span<const Durations> durations);

// By total falling, ties by kind.
std::vector<TransferLine> MakeTransferLines(const std::map<TransferKey, Transfers>& transfers);

RankLine MakeRankLine(const JobRank& rank);

}  // namespace gpusonde::analyze
