// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/communication.h"
#include "analyze/detail/read_detail.h"
#include "analyze/findings/job.h"
#include "analyze/report.h"
#include "analyze/trace_state.h"
#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// Builds a report from traces in the given order. Keeps only sums of each, so the traces of a job may exceed
// memory.
class ReportBuilder {
 public:
  // `named_steps`: ranges were named that are steps, so that traces without them have a note.
  explicit ReportBuilder(Alignment alignment = Alignment::kNone, CommunicationKernels communication = {},
                         bool named_steps = false)
      : communication_(std::move(communication)), named_steps_(named_steps) {
    report_.alignment = alignment;
  }

  // `ranks` are those of the state.
  void Add(const std::string& path, const importers::TraceInfo& info, const TraceState& state,
           std::vector<RankResult> ranks);
  // What one of its parts read in detail of the trace that was added last.
  void AddDetail(const DetailResult& detail);
  // Errors: kInvalidArgument, naming the traces, for two ranks of the same number at the same time and for
  // the same trace twice.
  Result<Report> Finish() &&;

 private:
  // Notes on traces without the steps that were named.
  void NoteMissingSteps();
  void NoteCollectivesBeyond();
  // Of traces without ranks: takes those in the names of their files, if each has one of its own. Returns
  // which ranks have a number now.
  std::vector<bool> NumberByNames();
  // Gives those without a number their place, or if that is another one's number, one that is free.
  void NumberRanks();
  Status CheckRanks() const;
  // No trace without a number of its own is there twice.
  Status CheckTraces() const;
  // Renumbers what refers to names that were dropped (NameTable).
  void JoinDropped();
  // Shifts the clocks of the ranks by these offsets.
  void AlignClocks(const std::vector<std::optional<int64_t>>& offsets);
  void AddRankLines();
  void AddDistributions();
  void AddPaths(const Job& job, const std::vector<std::vector<CollectiveWait>>& waits);
  void AddWaves();
  void AddReported(size_t trace, const importers::ReportedCollectives& collectives);
  void AddMetrics(const importers::TraceInfo& info, const TraceState& state, std::span<const uint32_t> ids);

  CommunicationKernels communication_;
  bool named_steps_;
  Report report_;
  TraceState all_;
  OperatorTable operators_;
  std::vector<std::pair<size_t, RankWaves>> waves_;     // with the number of their trace
  std::vector<std::pair<size_t, CriticalPath>> paths_;  // with the number of their trace
  std::map<uint32_t, std::vector<ValueCount>> fine_;    // as in Job
  std::vector<JobRank> ranks_;
  std::vector<JobMetrics> metrics_;
  importers::ReportedCollectives reported_;
};

}  // namespace gpusonde::analyze
