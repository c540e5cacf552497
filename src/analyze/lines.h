// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/detail/critical_path.h"
#include "analyze/detail/operators.h"
#include "analyze/findings/job.h"
#include "analyze/report.h"
#include "analyze/trace_state.h"
#include "importers/trace.h"

// Turns states into the lines of a report: the only place where sums become means and quantiles.
namespace gpusonde::analyze {

// `gpu_ahead_ns`: EstimateGpuClock.
TraceLine MakeTraceLine(const std::string& path, const importers::TraceInfo& info, const TraceState& state,
                        int64_t gpu_ahead_ns);

// Notes why a trace is incomplete.
void AddNotes(size_t trace, const importers::TraceInfo& info, const TraceState& state,
              std::vector<Note>& notes);

// Number of outliers among durations: beyond Tukey's fence (the third quartile plus three times the
// interquartile range) and clearly slower than the median, because short kernels have quartiles a few ns
// apart.
int64_t CountOutliers(const model::Sketch& durations);

IdleLine MakeIdleLine(const IdleTime& idle);

DurationLine MakeDurationLine(std::string name, const Durations& durations);

// One line per name that has durations, largest total first, ties by the names' bytes.
std::vector<DurationLine> MakeDurationLines(const NameTable& names, std::span<const Durations> durations);

// Of a kernel's durations.
DistributionLine MakeDistributionLine(const DurationLine& kernel, const model::Sketch& sketch);

// Largest total first, ties by kind.
std::vector<TransferLine> MakeTransferLines(const std::map<TransferKey, Transfers>& transfers);

// Those that launched work: by kind, largest total first, ties by the names' bytes.
std::vector<OperatorLine> MakeOperatorLines(const OperatorTable& table);

CriticalPathLine MakeCriticalPathLine(const JobRank& rank, const CriticalPath& path);

RankLine MakeRankLine(const JobRank& rank);

}  // namespace gpusonde::analyze
