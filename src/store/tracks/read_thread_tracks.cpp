// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/saturated.h"
#include "base/time.h"
#include "store/each_row.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"
#include "store/tracks/read_parts.h"

namespace gpusonde::store {
namespace {

// Spans that are read together are sorted by start in memory.
constexpr int64_t kSpansAtOnce = 500'000;

SqlPart AndOfThreads(const model::Selection& selection) {
  SqlPart condition = AndOfProcesses(selection);
  if (selection.tid.has_value()) condition += {" AND tid = ?", {int64_t{*selection.tid}}};
  return condition;
}

// Which row each event of a thread is drawn in: below those that it lies in. Events come by start, of those
// that start together the longest first.
class Nesting {
 public:
  int32_t RowOf(const Id128& process, int64_t tid, const TimeRange& event) {
    std::vector<int64_t>& ends_ns = open_[{process, tid}];
    while (!ends_ns.empty() && ends_ns.back() <= event.from_ns) ends_ns.pop_back();
    const auto row = static_cast<int32_t>(std::min(ends_ns.size(), size_t{SliceSums::kMaxRows} - 1));
    if (ends_ns.size() < SliceSums::kMaxRows) ends_ns.push_back(event.to_ns);
    return row;
  }

 private:
  std::map<std::pair<Id128, int64_t>, std::vector<int64_t>> open_;
};

// A table of what threads did, from a start to an end.
struct SpanTable {
  TrackKind track;
  std::string_view name;
  std::string_view kind;  // an expression: an EventKind
  std::string end;        // an expression
};

Status ReadSpans(Store& store, const model::Selection& selection, const SpanTable& table,
                 TrackBuilder& builder) {
  const TimeRange& range = builder.grid().range;
  Nesting nesting;
  const auto read = [&](const SqlPart& when) {
    SqlPart sql{fmt::format("SELECT process, tid, start_ns, {} AS end_ns, {} AS kind, name FROM {} WHERE ",
                            table.end, table.kind, table.name),
                {}};
    sql += when;
    sql.text += fmt::format(" AND {} >= start_ns", table.end);
    sql += AndOfThreads(selection);
    sql.text += " ORDER BY start_ns, end_ns DESC";
    return ForEachRow(store, sql, [&](const Rows& row) {
      const TimeRange span{row.Int64(2), row.Int64(3)};
      const int64_t tid = row.Int64(1);
      builder.Add({table.track, row.Id(0), {}, tid}, span, nesting.RowOf(row.Id(0), tid, span),
                  builder.NameOf(static_cast<EventKind>(row.Int64(4)), row.Text(5)));
    });
  };
  TRY(read(
      {fmt::format("start_ns >= 0 AND start_ns < ? AND {} > ?", table.end), {range.from_ns, range.from_ns}}));
  const auto counted = [&](const TimeRange& part) {
    SqlPart rows{
        fmt::format("(SELECT start_ns, 1 AS count FROM {} WHERE start_ns >= ? AND start_ns < ?", table.name),
        {part.from_ns, part.to_ns}};
    rows += AndOfThreads(selection);
    rows.text += ")";
    return rows;
  };
  ASSIGN_OR_RETURN(const auto parts, ReadSlicesOf(Asking(store), counted, range, kSpansAtOnce));
  for (const TimeRange& part : parts)
    TRY(read({"start_ns >= ? AND start_ns < ?", {part.from_ns, part.to_ns}}));
  return {};
}

}  // namespace

Status ReadCalls(Store& store, const model::Selection& selection, TrackBuilder& builder) {
  const std::string kind = std::to_string(static_cast<int>(EventKind::kCall));
  return ReadSpans(store, selection, {TrackKind::kCalls, "api_calls", kind, "end_ns"}, builder);
}

Status ReadRanges(Store& store, const model::Selection& selection, int64_t data_end_ns,
                  TrackBuilder& builder) {
  const std::string kind =
      fmt::format("CASE kind WHEN 'operator' THEN {} ELSE {} END", static_cast<int>(EventKind::kOperator),
                  static_cast<int>(EventKind::kAnnotation));
  const std::string end = fmt::format("coalesce(end_ns, greatest(start_ns, {}))", data_end_ns);
  return ReadSpans(store, selection, {TrackKind::kRanges, "ranges", kind, end}, builder);
}

Status ReadSteps(Store& store, const model::Selection& selection, TrackBuilder& builder) {
  const TimeRange& range = builder.grid().range;
  SqlPart sql{
      "SELECT process, tid, start_ns, end_ns, ordinal FROM steps WHERE start_ns >= 0 AND start_ns < ? AND "
      "end_ns > ? AND end_ns >= start_ns",
      {range.to_ns, range.from_ns}};
  sql += AndOfProcesses(selection);
  return ForEachRow(store, sql, [&](const Rows& row) {
    builder.Add({TrackKind::kSteps, row.Id(0), {}, row.Int64(1)}, {row.Int64(2), row.Int64(3)}, 0,
                builder.NameOf(EventKind::kStep, fmt::format("step {}", row.Int64(4))));
  });
}

// A wait is recorded when it ends, so rows after the range are read as well if they have one that may have
// begun before.
Status ReadStates(Store& store, const model::Selection& selection, TrackBuilder& builder) {
  constexpr int64_t kMaxWaitNs = 60 * kNanosPerSecond;
  const TimeRange& range = builder.grid().range;
  SqlPart sql{fmt::format("SELECT process, tid, metric, start_ns, bucket_ns, \"values\" FROM signals WHERE "
                          "process IS NOT NULL AND tid IS NOT NULL AND metric IN ('thread.{}')",
                          fmt::join(kThreadStates, "', 'thread.")),
              {}};
  sql += AndOfSignals({range.from_ns, AddSaturated(range.to_ns, kMaxWaitNs)});
  sql += {" AND (start_ns < ? OR list_max(\"values\") > bucket_ns)", {range.to_ns}};
  sql += AndOfThreads(selection);
  return ForEachRow(store, sql, [&](const Rows& row) {
    const std::string_view state = row.Text(2).substr(std::string_view("thread.").size());
    const int32_t name = builder.NameOf(EventKind::kState, state);
    const TrackKey key{TrackKind::kStates, row.Id(0), {}, row.Int64(1)};
    TimeRange bucket{row.Int64(3), row.Int64(3) + row.Int64(4)};
    for (const int64_t time_ns : row.Int64List(5)) {
      builder.AddState(key, bucket, name, time_ns);
      bucket = {bucket.to_ns, bucket.to_ns + row.Int64(4)};
    }
  });
}

SqlPart CountedThreadRows(const model::Selection& selection, const TimeRange& range) {
  SqlPart rows{"(", {}};
  for (const auto& [table, time] :
       {std::pair("api_calls", "start_ns"), {"ranges", "start_ns"}, {"samples", "time_ns"}}) {
    if (!rows.parameters.empty()) rows.text += " UNION ALL ";
    rows +=
        {fmt::format("SELECT {0} AS start_ns, 1 AS count FROM {1} WHERE {0} >= ? AND {0} < ?", time, table),
         {range.from_ns, range.to_ns}};
    rows += AndOfThreads(selection);
  }
  rows.text += ")";
  return rows;
}

}  // namespace gpusonde::store
