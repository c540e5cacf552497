// SPDX-License-Identifier: Apache-2.0
#include "store/gpu_sql.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/time.h"
#include "store/duckdb/schema.h"

namespace gpusonde::store {
namespace {

// Of 4 ms: 38 CPU samples a second on two CPUs meet some 40 of 10,000 kernels each.
constexpr int64_t kSlotNs = int64_t{1} << 22;

// Pieces of time in which ReadSlices counts rows: of a day, each is 21 s.
constexpr int64_t kPiecesCounted = 4'096;

constexpr int64_t kSessionReachNs = 600 * kNanosPerSecond;

constexpr std::string_view kKernelColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, name, graph_node";
constexpr std::string_view kMemcpyColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, '[memcpy ' || kind || ']' AS name, "
    "graph_node";
constexpr std::string_view kMemsetColumns =
    "process, device, session, correlation, stream, start_ns, end_ns, '[memset]' AS name, graph_node";

// Moments before 1970 are nobody's, and the ends of time are left for arithmetic.
TimeRange Widened(const TimeRange& range, int64_t by_ns) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  return {std::max<int64_t>(std::max<int64_t>(range.from_ns, 0) - by_ns, 0),
          range.to_ns > kLatest - by_ns ? kLatest : range.to_ns + by_ns};
}

TimeRange RangeOf(const model::Selection& selection) { return {selection.from_ns, selection.to_ns}; }

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

// What of a selection is the same for all work of a row.
SqlPart Selected(const model::Selection& selection) {
  SqlPart condition;
  if (selection.process.has_value()) condition += {" AND process = ?", {*selection.process}};
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

// Whether `device` is one whose idleness counts.
SqlPart DevicesMeant(const model::Selection& selection, const TimeRange& range) {
  if (selection.device.has_value()) return {"device = ?", {*selection.device}};
  if (!selection.process.has_value()) return {"true", {}};
  model::Selection of_process;
  of_process.process = selection.process;
  SqlPart used{"(SELECT device FROM ", {}};
  used += GpuWorkSpans(of_process, range, WorkIn::kRunsIn);
  used.text += ")";
  SqlPart meant{"(device IN ", {}};
  meant += used;
  meant.text += " OR NOT EXISTS ";
  meant += used;
  meant.text += ")";
  return meant;
}

// The sessions in which idleness is known: those of the process, or of everybody if it has none.
SqlPart Watched(const model::Selection& selection, const TimeRange& range) {
  SqlPart watched{"(SELECT * FROM ", {}};
  watched += GpuSessions({}, range);
  if (selection.process.has_value())
    watched += {" WHERE process = ? OR NOT EXISTS (SELECT 1 FROM gpu_sessions WHERE process = ?)",
                {*selection.process, *selection.process}};
  watched.text += ")";
  return watched;
}

}  // namespace

SqlPart GpuWork(const model::Selection& selection, const TimeRange& range, WorkIn which, Packs packs,
                const std::string& tables) {
  const SqlPart condition = WorkCondition(selection, range, which);
  SqlPart work{"(SELECT * FROM ", {}};
  work += AllWork(condition, tables);
  if (packs == Packs::kNone) {
    work.text += ")";
    return work;
  }
  work.text += fmt::format(
      " UNION ALL SELECT {} FROM (SELECT process, device, session, unnest(correlations) AS correlation, "
      "stream, {}, name, unnest(graph_nodes) AS graph_node FROM {}kernel_packs WHERE {}{} AND ",
      kKernelColumns, duckdb::kPackedTimes, tables, duckdb::kSoundPack,
      packs == Packs::kGraphs ? " AND len(graph_nodes) > 0" : "");
  work += PacksIn(selection, range, which);
  work.text += ") WHERE ";
  work += condition;
  work.text += ")";
  return work;
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

SqlPart GpuWorkSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                     const std::string& tables) {
  constexpr std::string_view kColumns = "process, device, start_ns, end_ns, 1 AS count";
  SqlPart spans{"(SELECT * FROM ", {}};
  spans += UnionOf({{kColumns, KernelRows(tables)}, {kColumns, "memcpys"}, {kColumns, "memsets"}},
                   WorkCondition(selection, range, which), tables);
  spans.text += fmt::format(
      " UNION ALL SELECT process, device, start_ns, end_ns, len(offsets_ns) AS count FROM {}kernel_packs "
      "WHERE {} AND end_ns >= start_ns AND ",
      tables, duckdb::kSoundPack);
  spans += PacksIn(selection, range, which);
  spans.text += ")";
  return spans;
}

Ask Asking(Store& store) {
  return [&store](const SqlPart& sql) { return store.Query(sql.text, sql.parameters); };
}

Result<std::vector<TimeRange>> ReadSlices(const Ask& ask, const model::Selection& selection,
                                          const TimeRange& range, int64_t rows, const std::string& tables) {
  SqlPart work{"(SELECT greatest(start_ns, ?) AS start_ns, count FROM ", {range.from_ns}};
  work += GpuWorkSpans(selection, range, WorkIn::kStartsIn, tables);
  work.text += ")";
  SqlPart total{"SELECT sum(count)::BIGINT, min(start_ns), max(start_ns) FROM ", {}};
  total += work;
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> sums, ask(total));
  ASSIGN_OR_RETURN(const bool any, sums->Next());
  if (!any || sums->Int64(0) <= rows) return std::vector<TimeRange>{range};

  const int64_t first_ns = sums->Int64(1);
  const int64_t piece_ns = (sums->Int64(2) - first_ns) / kPiecesCounted + 1;
  SqlPart pieces{"SELECT (start_ns - ?) // ? AS piece, sum(count)::BIGINT FROM ", {first_ns, piece_ns}};
  pieces += work;
  pieces.text += " GROUP BY piece ORDER BY piece";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> counts, ask(pieces));
  std::vector<TimeRange> slices;
  int64_t begin_ns = range.from_ns;
  int64_t rows_since_begin = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, counts->Next());
    if (!more) break;
    const int64_t start_ns = first_ns + counts->Int64(0) * piece_ns;
    const int64_t count = counts->Int64(1);
    if (rows_since_begin > 0 && rows_since_begin + count > rows) {
      slices.push_back({begin_ns, start_ns});
      begin_ns = start_ns;
      rows_since_begin = 0;
    }
    rows_since_begin += count;
    if (rows_since_begin <= rows || piece_ns <= kNanosPerSecond) continue;
    // One piece has too many: work comes in bursts, or a time in the file is far off.
    const int64_t end_ns = start_ns > range.to_ns - piece_ns ? range.to_ns : start_ns + piece_ns;
    ASSIGN_OR_RETURN(const std::vector<TimeRange> finer,
                     ReadSlices(ask, selection, {begin_ns, end_ns}, rows, tables));
    slices.insert(slices.end(), finer.begin(), finer.end());
    begin_ns = end_ns;
    rows_since_begin = 0;
  }
  if (begin_ns < range.to_ns) slices.push_back({begin_ns, range.to_ns});
  return slices;
}

TimeRange SessionReach(const TimeRange& range) { return Widened(range, kSessionReachNs); }

SqlPart GpuSessions(const model::Selection& selection, const TimeRange& range) {
  SqlPart of_process;
  if (selection.process.has_value()) of_process += {" AND process = ?", {*selection.process}};
  SqlPart sessions{
      "(SELECT process, session, start_ns, end_ns FROM (SELECT process, session, start_ns, "
      "coalesce(end_ns, lead(start_ns) OVER (PARTITION BY process ORDER BY session), exited_ns, "
      "9223372036854775807) AS end_ns FROM gpu_sessions LEFT JOIN processes USING (process) WHERE start_ns > "
      "0",
      {}};
  sessions += of_process;
  sessions +=
      {") WHERE start_ns < ? AND end_ns > ? AND end_ns >= start_ns UNION ALL "
       "SELECT process, session, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM ",
       {range.to_ns, range.from_ns}};
  const TimeRange reach = SessionReach(range);
  SqlPart condition{
      "{'process': process, 'session': session} NOT IN "
      "(SELECT {'process': process, 'session': session} FROM gpu_sessions WHERE start_ns > 0) AND "
      "end_ns > ? AND start_ns < ? AND end_ns >= start_ns AND start_ns >= 0",
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
  sessions.text += " GROUP BY process, session)";
  return sessions;
}

SqlPart WhileGpuIdle(const SqlPart& samples, const model::Selection& selection) {
  // Sorted by their starts, pieces of time cover a moment if the latest end of all that start until then lies
  // behind it.
  constexpr std::string_view kUntil =
      "(SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns) AS until_ns FROM ";
  const TimeRange range = Widened(RangeOf(selection), 0);
  // Whoever keeps the device busy, it is not idle.
  const auto work = [&](std::string_view length) {
    SqlPart part{fmt::format("(SELECT start_ns, end_ns, start_ns // {} AS slot FROM ", kSlotNs), {}};
    part += GpuWork({}, range, WorkIn::kRunsIn);
    part.text += fmt::format(" WHERE end_ns - start_ns {} {} AND ", length, kSlotNs);
    part += DevicesMeant(selection, SessionReach(range));
    part.text += ")";
    return part;
  };

  // Moments in which something ran. What is short runs in the slot of time that it starts in or the next one,
  // so the many rows of work pass by a few moments, unsorted; long work is rare.
  SqlPart busy{fmt::format("SELECT time_ns FROM (SELECT DISTINCT time_ns, "
                           "unnest([time_ns // {0}, time_ns // {0} - 1]) AS slot FROM ",
                           kSlotNs),
               {}};
  busy += samples;
  busy.text += ") AS moments JOIN ";
  busy += work("<=");
  busy.text +=
      " USING (slot) WHERE time_ns >= start_ns AND time_ns < end_ns UNION ALL "
      "SELECT time_ns FROM ";
  busy += samples;
  busy.text += fmt::format(" AS moments ASOF JOIN {}", kUntil);
  busy += work(">");
  busy.text += ") AS long ON time_ns >= start_ns WHERE time_ns < until_ns";

  SqlPart rows{"(SELECT samples.* FROM ", {}};
  rows += samples;
  rows.text += fmt::format(" AS samples ASOF JOIN {}", kUntil);
  rows += Watched(selection, range);
  rows.text +=
      ") AS seen ON samples.time_ns >= seen.start_ns "
      "WHERE samples.time_ns < seen.until_ns AND samples.time_ns NOT IN (";
  rows += busy;
  rows.text += "))";
  return rows;
}

}  // namespace gpusonde::store
