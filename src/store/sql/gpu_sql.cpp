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

#include "base/time.h"
#include "store/duckdb/schema.h"

namespace gpusonde::store {
namespace {

// Slots of 4 ms: at 10,000 kernels a second each of the 38 CPU samples a second of two CPUs is compared with
// some 40 kernels.
constexpr int64_t kSlotNs = int64_t{1} << 22;

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

// Extended on both sides, without times before 1970 and without overflow.
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

// The parts of a selection that apply to all kinds of work.
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

// The devices that have to be idle; nothing: all of them.
Result<std::optional<std::vector<Id128>>> ReadDevicesMeant(const Ask& ask, const model::Selection& selection,
                                                           const TimeRange& range) {
  if (selection.device.has_value()) return std::vector{*selection.device};
  if (!selection.process.has_value()) return std::nullopt;
  model::Selection of_process;
  of_process.process = selection.process;
  SqlPart used{"SELECT DISTINCT device FROM ", {}};
  used += GpuWorkSpans(of_process, SessionReach(range), WorkIn::kRunsIn);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(used));
  std::vector<Id128> devices;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    devices.push_back(rows->Id(0));
  }
  return devices.empty() ? std::nullopt : std::optional(std::move(devices));
}

// When idleness was observed, merged: in sessions of the process, or in all if it has none.
Result<std::vector<TimeRange>> ReadWatched(const Ask& ask, const model::Selection& selection,
                                           const TimeRange& range) {
  SqlPart sql{"SELECT start_ns, end_ns FROM ", {}};
  sql += GpuSessions({}, range);
  if (selection.process.has_value())
    sql += {" WHERE process = ? OR NOT EXISTS (SELECT 1 FROM gpu_sessions WHERE process = ?)",
            {*selection.process, *selection.process}};
  sql.text += " ORDER BY start_ns";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(sql));
  return ReadUnion(*rows);
}

// One part of WhileGpuIdle.
SqlPart IdleIn(const TimeRange& range, const SqlPart& samples, std::span<const TimeRange> watched,
               const std::optional<std::vector<Id128>>& devices) {
  // A moment lies in some interval if the latest end among the intervals that start before it is later.
  constexpr std::string_view kUntil =
      "(SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns) AS until_ns FROM ";
  // Work of any process keeps the device busy.
  const auto work = [&](std::string_view length) {
    SqlPart part{fmt::format("(SELECT start_ns, end_ns, start_ns // {} AS slot FROM ", kSlotNs), {}};
    part += GpuWork({}, range, WorkIn::kRunsIn);
    part.text += fmt::format(" WHERE end_ns - start_ns {} {}", length, kSlotNs);
    if (devices.has_value()) part += {" AND device IN (SELECT unnest(?::UUID[]))", {*devices}};
    part.text += ")";
    return part;
  };

  // Moments in which work ran. Short work runs in the slot in which it starts or in the next one, so that a
  // hash join by slot finds it without sorting; long work is rare and sorted.
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
  std::vector<std::string> intervals;
  for (const TimeRange& time : watched)
    intervals.push_back(fmt::format("({}, {})", time.from_ns, time.to_ns));
  rows.text += fmt::format(
      " AS samples ASOF JOIN (VALUES {}) AS seen(start_ns, end_ns) ON samples.time_ns >= seen.start_ns "
      "WHERE samples.time_ns < seen.end_ns AND samples.time_ns NOT IN (",
      fmt::join(intervals, ", "));
  rows += busy;
  rows.text += "))";
  return rows;
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

  // Whole seconds, because a pack's kernels start anywhere in its second.
  const int64_t first_ns = sums->Int64(1) - sums->Int64(1) % kNanosPerSecond;
  const int64_t piece_ns =
      ((sums->Int64(2) - first_ns) / kPiecesCounted / kNanosPerSecond + 1) * kNanosPerSecond;
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

Result<std::vector<SqlPart>> WhileGpuIdle(const Ask& ask, const SamplesIn& samples,
                                          const model::Selection& selection, int64_t slice_rows) {
  const TimeRange range = Widened(RangeOf(selection), 0);
  ASSIGN_OR_RETURN(const auto devices, ReadDevicesMeant(ask, selection, range));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> watched, ReadWatched(ask, selection, range));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlices(ask, {}, range, slice_rows));
  std::vector<SqlPart> parts;
  for (const TimeRange& slice : slices) {
    const auto first = std::ranges::upper_bound(watched, slice.from_ns, {}, &TimeRange::to_ns);
    const auto last = std::ranges::lower_bound(watched, slice.to_ns, {}, &TimeRange::from_ns);
    if (first < last) parts.push_back(IdleIn(slice, samples(slice), {first, last}, devices));
  }
  return parts;
}

}  // namespace gpusonde::store
