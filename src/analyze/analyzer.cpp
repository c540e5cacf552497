// SPDX-License-Identifier: Apache-2.0
#include "analyze/analyzer.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "analyze/findings/job.h"
#include "analyze/lines.h"
#include "analyze/read_trace.h"
#include "importers/trace.h"

namespace gpusonde::analyze {
namespace {

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

}  // namespace

Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options) {
  const ReadOptions how{.threads = options.threads > 0 ? options.threads : UsableCores(),
                        .partial = options.partial,
                        .share = {}};
  Report report;
  TraceState all;
  std::vector<JobRank> ranks;
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(paths[i], {.partial = options.partial}));
    ASSIGN_OR_RETURN(const TraceState state, ReadTrace(*trace, how));
    report.traces.push_back(MakeTraceLine(paths[i], trace->info(), state));
    AddNotes(i, trace->info(), state, report.notes);
    ASSIGN_OR_RETURN(std::vector<RankResult> results, FollowProcesses(state, how.threads));
    const std::vector<uint32_t> ids = all.MergeSums(state);
    for (RankResult& result : results) {
      Renumber(result, ids);
      ranks.push_back({.trace = i,
                       .number = trace->info().rank.value_or(static_cast<int64_t>(ranks.size())),
                       .epoch_offset_ns = trace->info().epoch_offset_ns,
                       .result = std::move(result)});
    }
  }
  report.kernels = MakeDurationLines(all.names(), all.kernels());
  report.api_calls = MakeDurationLines(all.names(), all.calls());
  report.memcpys = MakeTransferLines(all.copies());
  report.memsets = MakeTransferLines(all.sets());
  const Job job{.names = all.names(), .kernels = all.kernels(), .ranks = ranks};
  for (const JobRank& rank : job.ranks) report.ranks.push_back(MakeRankLine(rank));
  report.variability = FindVariability(job);
  report.windows = FindAnomalousWindows(job);
  report.copy_effects = FindCopyEffects(job);
  report.slow_ranks = FindSlowRanks(job);
  report.collectives = CompareCollectives(job);
  return report;
}

}  // namespace gpusonde::analyze
