// SPDX-License-Identifier: Apache-2.0
#include "analyze/analyzer.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "analyze/read_trace.h"
#include "analyze/report_builder.h"
#include "importers/trace.h"

namespace gpusonde::analyze {
namespace {

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

// What the trace says of itself, but for the rank if the file's name tells it.
Result<importers::TraceInfo> Describe(const std::string& path, const importers::TraceInfo& info,
                                      const Options& options) {
  importers::TraceInfo described = info;
  if (!options.rank_from.has_value()) return described;
  std::smatch match;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!std::regex_search(name, match, *options.rank_from) || match.size() < 2)
    return Fail(ErrorCode::kInvalidArgument, path + ": --rank-from finds no rank in its name");
  const std::string digits = match[1];
  int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || end != digits.data() + digits.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: --rank-from finds '{}', which is no number", path, digits));
  described.rank = rank;
  return described;
}

}  // namespace

Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options) {
  const ReadOptions how{.threads = options.threads > 0 ? options.threads : UsableCores(),
                        .partial = options.partial,
                        .share = {}};
  ReportBuilder builder;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(path, {.partial = options.partial}));
    ASSIGN_OR_RETURN(const TraceState state, ReadTrace(*trace, how));
    ASSIGN_OR_RETURN(importers::TraceInfo info, Describe(path, trace->info(), options));
    ASSIGN_OR_RETURN(std::vector<RankResult> ranks, FollowProcesses(state, how.threads));
    builder.Add(path, info, state, std::move(ranks));
  }
  return std::move(builder).Finish();
}

}  // namespace gpusonde::analyze
