// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/report.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// Puts a report together from traces that were read, in the order in which they are given. Only sums are kept
// of each, so a job may have more traces than memory.
class ReportBuilder {
 public:
  explicit ReportBuilder(Alignment alignment = Alignment::kNone) { report_.alignment = alignment; }

  // `ranks` are those of the state.
  void Add(const std::string& path, const importers::TraceInfo& info, const TraceState& state,
           std::vector<RankResult> ranks);
  // Errors: kInvalidArgument for two ranks of the same number at the same time, naming their traces.
  Result<Report> Finish() &&;

 private:
  Status CheckRanks() const;
  // Sets the clocks of ranks that have collectives in common with the first to that one's.
  void AlignClocks(const Job& job);
  void AddRankLines();
  void AddMetrics(const importers::TraceInfo& info, const TraceState& state, std::span<const uint32_t> ids);

  Report report_;
  TraceState all_;
  std::vector<JobRank> ranks_;
  std::vector<JobMetrics> metrics_;
};

}  // namespace gpusonde::analyze
