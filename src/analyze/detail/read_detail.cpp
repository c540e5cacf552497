// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/read_detail.h"

#include <algorithm>

#include "analyze/detail/confirm_unrecorded.h"
#include "analyze/detail/detail_sink.h"
#include "analyze/detail/detail_state.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

Result<DetailResult> ReadDetail(const std::string& path, importers::TraceFormat format,
                                const Options& options) {
  using importers::TraceFormat;
  DetailResult result{.without_spans = options.operators, .without_paths = options.critical_path};
  if (!options.kernel_summary) {
    ASSIGN_OR_RETURN(
        result.clocks,
        importers::ReadClocks(path, format, {.partial = options.partial, .temp_limit = options.temp_limit}));
    ASSIGN_OR_RETURN(result.collectives, importers::ReadReportedCollectives(path, format));
  }
  if (!options.operators && !options.critical_path && !options.waves) return result;
  ASSIGN_OR_RETURN(const auto trace,
                   importers::OpenTrace(
                       path, {.partial = options.partial, .detail = true, .temp_limit = options.temp_limit}));
  if (format == TraceFormat::kSonde || format == TraceFormat::kNcuCsv) return result;
  DetailState state(/*one_process=*/format != TraceFormat::kNsysSqlite,
                    {.calls = options.critical_path, .waves = options.waves});
  TRY(ReadAll(*trace, options.partial, state));
  TRY(state.Finish());
  if (MayBeUnrecorded(format)) state.LeaveOutUnrecorded();
  if (options.operators) {
    ASSIGN_OR_RETURN(result.operators, SumOperators(state));
    result.without_spans = std::ranges::none_of(result.operators.rows(),
                                                [](const auto& row) { return row.second.launches > 0; });
  }
  if (options.critical_path) {
    ASSIGN_OR_RETURN(result.paths, FindCriticalPaths(state, {.communication = options.communication,
                                                             .steps = options.steps}));
  }
  result.without_paths = options.critical_path && result.paths.empty();
  if (options.waves) result.waves = state.Waves(trace->info());
  return result;
}

}  // namespace gpusonde::analyze
