// SPDX-License-Identifier: Apache-2.0
#include "analyze/analyzer.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "analyze/lines.h"
#include "analyze/read_trace.h"
#include "analyze/timeline/process_timeline.h"
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
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(paths[i], {.partial = options.partial}));
    ASSIGN_OR_RETURN(const TraceState state, ReadTrace(*trace, how));
    report.traces.push_back(MakeTraceLine(paths[i], trace->info(), state));
    AddNotes(i, trace->info(), state, report.notes);
    ASSIGN_OR_RETURN(const std::vector<RankResult> ranks, FollowProcesses(state, how.threads));
    for (const RankResult& result : ranks) {
      RankLine& line = report.ranks.emplace_back(MakeRankLine(result));
      line.trace = i;
      line.rank = trace->info().rank.value_or(static_cast<int64_t>(report.ranks.size()) - 1);
    }
    all.MergeSums(state);
  }
  report.kernels = MakeDurationLines(all.names(), all.kernels());
  report.api_calls = MakeDurationLines(all.names(), all.calls());
  report.memcpys = MakeTransferLines(all.copies());
  report.memsets = MakeTransferLines(all.sets());
  return report;
}

}  // namespace gpusonde::analyze
