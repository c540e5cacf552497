// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/detail/critical_path.h"
#include "analyze/metric_table.h"
#include "analyze/name_table.h"
#include "analyze/report.h"
#include "analyze/timeline/process_timeline.h"
#include "importers/clocks.h"
#include "importers/collectives.h"

// Findings across all ranks. Each function adds its lines to a report; all are pure.
namespace gpusonde::analyze {

// One rank of the traced job.
struct JobRank {
  size_t trace = 0;
  int64_t number = 0;
  bool numbered = false;        // by its trace or the user
  bool is_main = false;         // of its trace's ranks the one that the trace is of
  bool is_sampled = false;      // its launches are a sample
  int64_t epoch_offset_ns = 0;  // added to its times, they are ns since the Unix epoch
  KnownGroups groups;           // of its trace
  importers::ClockTrack clock;  // of its device
  RankResult result;            // names are numbered as in Job::names
};

// Metrics of launches on one rank, by names as in Job::names.
struct JobMetrics {
  int64_t rank = 0;
  std::vector<MetricSums> sums;
};

struct Job {
  const NameTable& names;
  std::span<const Durations> kernels;           // by name
  std::span<const std::string_view> libraries;  // of communication kernels, by name; empty for others
  // Of kernels that vary little, by name; of those that vary more, or in some traces, not all durations.
  const std::map<uint32_t, std::vector<ValueCount>>& fine;
  std::span<const JobRank> ranks;
  std::span<const JobMetrics> metrics;
  const importers::ReportedCollectives* reported = nullptr;  // of all ranks; null: nothing
};

// Renumbers the names in a result; names that get the same number are joined.
void Renumber(RankResult& result, std::span<const uint32_t> ids);

// Whether the kernels of a name are communication.
inline bool IsCommunication(const Job& job, uint32_t name) { return !job.libraries[name].empty(); }

std::vector<VariabilityLine> FindVariability(const Job& job);
std::vector<WindowLine> FindAnomalousWindows(const Job& job);
std::vector<CopyEffectLine> FindCopyEffects(const Job& job);
std::vector<SlowRankLine> FindSlowRanks(const Job& job);
// Of each rank with kernels, in the order of ranks: those that take most time.
std::vector<RankKernelsLine> SumKernelsByRank(const Job& job);
// Of each rank with some, in the order of ranks.
std::vector<SequencesLine> ListSequences(const Job& job);
// Of each rank with steps, in the order of ranks.
std::vector<StepsLine> SumSteps(const Job& job);
// Of each rank whose process has calls that wait, in the order of ranks.
std::vector<SyncsLine> SumSyncs(const Job& job);
// Of each rank with GPU work, in the order of ranks.
std::vector<ConcurrencyLine> ListConcurrency(const Job& job);
// Of each rank whose launches of kernels or graphs were all recorded, in the order of ranks.
std::vector<LaunchPatternLine> ListLaunchPatterns(const Job& job);
// Of each rank with samples of its clock within its span, in the order of ranks; with the unusual windows of
// all.
std::vector<ClockLine> CompareClocks(const Job& job, std::span<const WindowLine> windows);

// How long a rank waited in a collective for the one that came last.
struct CollectiveWait {
  int64_t start_ns = 0;  // of the rank's kernel, by its trace's clock
  int64_t wait_ns = 0;
  int64_t last = 0;  // the number of the rank that came last
};

struct CollectiveComparison {
  std::vector<CollectiveLine> lines;
  std::vector<BandwidthLine> bandwidth;  // MeasureBandwidth
  // How far each rank's clock is ahead of that of the first rank with collectives; empty for ranks that have
  // no collectives in common with it, also not by way of other ranks.
  std::vector<std::optional<int64_t>> clock_offsets;
  // Of each rank, by start, if asked for: those that are longer than the residual.
  std::vector<std::vector<CollectiveWait>> waits;
};
CollectiveComparison CompareCollectives(const Job& job, bool with_waits = false);
// Makes what a path has of a collective before its last rank came a part of its own, named by that rank.
// `waits`: of the path's rank, an index into the job's.
void AddRankWaits(const Job& job, size_t rank, std::span<const CollectiveWait> waits, CriticalPath& path);
std::vector<KernelMetricLine> CompareKernelMetrics(const Job& job);

}  // namespace gpusonde::analyze
