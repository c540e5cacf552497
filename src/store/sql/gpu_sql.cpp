// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_sql.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/saturated.h"
#include "base/time.h"
#include "store/duckdb/schema.h"
#include "store/sql/process_sql.h"
#include "store/sql/saturated_sum.h"

namespace gpusonde::store {
namespace {

// Pieces in which ReadSlices counts rows: 21 s each for a day.
constexpr int64_t kPiecesCounted = 4'096;

constexpr int64_t kSessionReachNs = 600 * kNanosPerSecond;

constexpr std::string_view kKernelColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, name, graph_node";
constexpr std::string_view kMemcpyColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, '[memcpy ' || kind || ']' AS name, "
    "graph_node";
constexpr std::string_view kMemsetColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, '[memset]' AS name, graph_node";

// `SELECT columns FROM table WHERE` of each table, with the same condition.
SqlPart UnionOf(std::initializer_list<std::pair<std::string_view, std::string_view>> selects,
                const SqlPart& condition, std::string_view tables = "") {
  SqlPart all{"(", {}};
  std::string_view separator;
  for (const auto& [columns, table] : selects) {
    all.text += fmt::format("{}SELECT {} FROM {}{} WHERE ", std::exchange(separator, " UNION ALL "), columns,
                            tables, table);
    all += condition;
  }
  all.text += ")";
  return all;
}

// The table of kernels with a row each. The view of the same name has those of packs as well.
std::string_view KernelRows(std::string_view tables) { return tables.empty() ? "raw.kernels" : "kernels"; }

SqlPart AllWork(const SqlPart& condition, std::string_view tables) {
  return UnionOf(
      {{kKernelColumns, KernelRows(tables)}, {kMemcpyColumns, "memcpys"}, {kMemsetColumns, "memsets"}},
      condition, tables);
}

// The parts of a selection that apply to all kinds of work.
SqlPart Selected(const model::Selection& selection) {
  SqlPart condition;
  condition += AndOfProcesses(selection);
  if (selection.device.has_value()) condition += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value())
    condition += {" AND stream = ?", {*selection.stream}};
  return condition;
}

// A condition on rows of work.
SqlPart WorkCondition(const model::Selection& selection, const TimeRange& range, WorkIn which) {
  SqlPart condition{which == WorkIn::kStartsIn
                        ? "start_ns >= ? AND start_ns < ? AND end_ns >= start_ns"
                        : "end_ns > ? AND start_ns < ? AND end_ns > start_ns AND start_ns >= 0",
                    {std::max<int64_t>(range.from_ns, 0), range.to_ns}};
  condition += Selected(selection);
  return condition;
}

}  // namespace

SqlPart GpuWork(const model::Selection& selection, const TimeRange& range, WorkIn which, Packs packs,
                const std::string& tables, const SqlPart& also) {
  SqlPart condition = WorkCondition(selection, range, which);
  condition += also;
  SqlPart work{"(SELECT * FROM ", {}};
  work += AllWork(condition, tables);
  if (packs == Packs::kNone) {
    work.text += ")";
    return work;
  }
  work.text += fmt::format(
      " UNION ALL SELECT {} FROM (SELECT process, device, session, unnest(correlations) AS correlation, "
      "stream, {}, name, unnest(graph_nodes) AS graph_node FROM {}kernel_packs WHERE {} AND ",
      kKernelColumns, duckdb::kPackedTimes, tables, duckdb::kSoundPack);
  work += PacksIn(selection, range, which);
  work.text += ") WHERE ";
  work += condition;
  work.text += ")";
  return work;
}

SqlPart GpuTimes(const TimeRange& range, const SqlPart& also) {
  constexpr std::string_view kColumns = "device, start_ns, end_ns";
  SqlPart condition = WorkCondition({}, range, WorkIn::kRunsIn);
  condition += also;
  SqlPart times{"(SELECT * FROM ", {}};
  times += UnionOf({{kColumns, KernelRows("")}, {kColumns, "memcpys"}, {kColumns, "memsets"}}, condition);
  times.text += fmt::format(" UNION ALL SELECT {} FROM (SELECT device, {} FROM kernel_packs WHERE {} AND ",
                            kColumns, duckdb::kPackedTimes, duckdb::kSoundPack);
  times += PacksIn({}, range, WorkIn::kRunsIn);
  times += also;
  times.text += ") WHERE ";
  times += condition;
  times.text += ")";
  return times;
}

SqlPart PacksIn(const model::Selection& selection, const TimeRange& range, WorkIn which) {
  SqlPart condition;
  if (which == WorkIn::kStartsIn)
    condition = {"start_ns > ? AND start_ns < ?",
                 {std::max<int64_t>(range.from_ns, 0) - kNanosPerSecond, range.to_ns}};
  else
    condition = {"end_ns > ? AND start_ns < ?", {std::max<int64_t>(range.from_ns, 0), range.to_ns}};
  condition += Selected(selection);
  return condition;
}

SqlPart PackSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                  const std::string& tables) {
  SqlPart spans{fmt::format("(SELECT process, device, start_ns, end_ns, greatest(count, 0) AS count "
                            "FROM {}kernel_packs WHERE {} AND ",
                            tables, duckdb::kSoundPack),
                {}};
  spans += PacksIn(selection, range, which);
  spans.text += ")";
  return spans;
}

SqlPart GpuWorkSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                     const std::string& tables) {
  constexpr std::string_view kColumns = "process, device, start_ns, end_ns, 1 AS count";
  SqlPart spans{"(SELECT * FROM ", {}};
  spans += UnionOf({{kColumns, KernelRows(tables)}, {kColumns, "memcpys"}, {kColumns, "memsets"}},
                   WorkCondition(selection, range, which), tables);
  spans.text += " UNION ALL SELECT * FROM ";
  spans += PackSpans(selection, range, which, tables);
  spans.text += " WHERE end_ns >= start_ns)";
  return spans;
}

Result<std::vector<TimeRange>> ReadSlicesOf(const Ask& ask, const CountedRows& counted,
                                            const TimeRange& range, int64_t rows, int64_t grain_ns) {
  // Rows are counted by the grain.
  if (range.from_ns >= 0 && range.to_ns - range.from_ns <= grain_ns) return std::vector<TimeRange>{range};
  SqlPart work{"(SELECT greatest(start_ns, ?) AS start_ns, count FROM ", {range.from_ns}};
  work += counted(range);
  work.text += ")";
  SqlPart total{fmt::format("SELECT {}, min(start_ns), max(start_ns) FROM ", SaturatedSum("count")), {}};
  total += work;
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> sums, ask(total));
  ASSIGN_OR_RETURN(const bool any, sums->Next());
  if (!any || sums->Int64(0) <= rows) return std::vector<TimeRange>{range};

  const int64_t first_ns = sums->Int64(1) - sums->Int64(1) % grain_ns;
  const int64_t piece_ns = ((sums->Int64(2) - first_ns) / kPiecesCounted / grain_ns + 1) * grain_ns;
  SqlPart pieces{fmt::format("SELECT (start_ns - ?) // ? AS piece, {} FROM ", SaturatedSum("count")),
                 {first_ns, piece_ns}};
  pieces += work;
  pieces.text += " GROUP BY piece ORDER BY piece";
  std::vector<TimeRange> slices;
  int64_t begin_ns = range.from_ns;
  int64_t rows_since_begin = 0;
  TRY(ForEachRow(ask, pieces, [&](const Rows& row) -> Status {
    const int64_t start_ns = first_ns + row.Int64(0) * piece_ns;
    const int64_t count = row.Int64(1);
    if (rows_since_begin > 0 && AddSaturated(rows_since_begin, count) > rows) {
      slices.push_back({begin_ns, start_ns});
      begin_ns = start_ns;
      rows_since_begin = 0;
    }
    rows_since_begin = AddSaturated(rows_since_begin, count);
    if (rows_since_begin <= rows || piece_ns <= grain_ns) return {};
    // One piece has too many: work comes in bursts, or a time in the file is far off.
    const int64_t end_ns = start_ns > range.to_ns - piece_ns ? range.to_ns : start_ns + piece_ns;
    ASSIGN_OR_RETURN(const std::vector<TimeRange> finer,
                     ReadSlicesOf(ask, counted, {begin_ns, end_ns}, rows, grain_ns));
    slices.insert(slices.end(), finer.begin(), finer.end());
    begin_ns = end_ns;
    rows_since_begin = 0;
    return {};
  }));
  if (begin_ns < range.to_ns) slices.push_back({begin_ns, range.to_ns});
  return slices;
}

Result<std::vector<TimeRange>> ReadSlices(const Ask& ask, const model::Selection& selection,
                                          const TimeRange& range, int64_t rows, const std::string& tables) {
  const auto counted = [&](const TimeRange& part) {
    return GpuWorkSpans(selection, part, WorkIn::kStartsIn, tables);
  };
  return ReadSlicesOf(ask, counted, range, rows);
}

TimeRange SessionReach(const TimeRange& range) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  return {std::max<int64_t>(range.from_ns, kSessionReachNs) - kSessionReachNs,
          range.to_ns > kLatest - kSessionReachNs ? kLatest : range.to_ns + kSessionReachNs};
}

SqlPart GpuSessions(const model::Selection& selection, const TimeRange& range) {
  const SqlPart of_process = AndOfProcesses(selection);
  SqlPart sessions{
      "(SELECT process, session, start_ns, end_ns FROM (SELECT process, session, start_ns, "
      "coalesce(end_ns, lead(start_ns) OVER (PARTITION BY process ORDER BY session, start_ns), exited_ns, "
      "9223372036854775807) AS end_ns FROM gpu_sessions LEFT JOIN processes USING (process) WHERE start_ns > "
      "0",
      {}};
  sessions += of_process;
  sessions +=
      {") WHERE start_ns < ? AND end_ns > ? AND end_ns >= start_ns UNION ALL SELECT * FROM "
       "(SELECT process, session, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM ",
       {range.to_ns, range.from_ns}};
  const TimeRange reach = SessionReach(range);
  SqlPart condition{"end_ns > ? AND start_ns < ? AND end_ns >= start_ns AND start_ns >= 0",
                    {reach.from_ns, reach.to_ns}};
  condition += of_process;
  constexpr std::string_view kColumns = "process, session, start_ns, end_ns";
  sessions += UnionOf({{kColumns, "raw.kernels"},
                       {kColumns, "kernel_packs"},
                       {kColumns, "memcpys"},
                       {kColumns, "memsets"},
                       {kColumns, "syncs"},
                       {kColumns, "api_calls"}},
                      condition);
  sessions.text +=
      " GROUP BY process, session) ANTI JOIN "
      "(SELECT process, session FROM gpu_sessions WHERE start_ns > 0) USING (process, session))";
  return sessions;
}

}  // namespace gpusonde::store
