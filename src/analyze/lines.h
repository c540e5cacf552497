// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/report.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"
#include "importers/trace.h"

// From states to the lines of a report: the only place where sums become means and quantiles.
namespace gpusonde::analyze {

TraceLine MakeTraceLine(const std::string& path, const importers::TraceInfo& info, const TraceState& state);

// Why a trace is not all there.
void AddNotes(size_t trace, const importers::TraceInfo& info, const TraceState& state,
              std::vector<Note>& notes);

DurationLine MakeDurationLine(std::string name, const Durations& durations);

// One line per name that has durations, by total falling, ties by the names' bytes.
std::vector<DurationLine> MakeDurationLines(const NameTable& names, std::span<const Durations> durations);

// By total falling, ties by kind.
std::vector<TransferLine> MakeTransferLines(const std::map<TransferKey, Transfers>& transfers);

// `rank` and `trace` are left to the caller.
RankLine MakeRankLine(const RankResult& result);

}  // namespace gpusonde::analyze
