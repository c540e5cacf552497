// SPDX-License-Identifier: Apache-2.0
#include "store/gpu_sql.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/time.h"

namespace gpusonde::store {
namespace {

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
                const SqlPart& condition) {
  SqlPart all{"(", {}};
  std::string_view separator;
  for (const auto& [columns, table] : selects) {
    all.text += fmt::format("{}SELECT {} FROM {} WHERE ", std::exchange(separator, " UNION ALL "), columns,
                            table);
    all += condition;
  }
  all.text += ")";
  return all;
}

SqlPart AllWork(const SqlPart& condition) {
  return UnionOf({{kKernelColumns, "kernels"}, {kMemcpyColumns, "memcpys"}, {kMemsetColumns, "memsets"}},
                 condition);
}

// The devices whose idleness counts, as what follows IN.
SqlPart DevicesMeant(const model::Selection& selection, const TimeRange& range) {
  if (selection.device.has_value()) return {"(?)", {*selection.device}};
  model::Selection of_process;
  of_process.process = selection.process;
  SqlPart devices{"(SELECT device FROM ", {}};
  devices += GpuWork(of_process, range, WorkIn::kRunsIn);
  devices.text += ")";
  return devices;
}

}  // namespace

SqlPart GpuWork(const model::Selection& selection, const TimeRange& range, WorkIn which) {
  SqlPart condition{which == WorkIn::kStartsIn
                        ? "start_ns >= ? AND start_ns < ? AND end_ns >= start_ns"
                        : "end_ns > ? AND start_ns < ? AND end_ns > start_ns AND start_ns >= 0",
                    {std::max<int64_t>(range.from_ns, 0), range.to_ns}};
  if (selection.process.has_value()) condition += {" AND process = ?", {*selection.process}};
  if (selection.device.has_value()) condition += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value())
    condition += {" AND stream = ?", {*selection.stream}};
  return AllWork(condition);
}

TimeRange SessionReach(const TimeRange& range) { return Widened(range, kSessionReachNs); }

SqlPart GpuSessions(const model::Selection& selection, const TimeRange& range) {
  const TimeRange reach = SessionReach(range);
  SqlPart condition{"end_ns > ? AND start_ns < ? AND end_ns >= start_ns AND start_ns >= 0",
                    {reach.from_ns, reach.to_ns}};
  if (selection.process.has_value()) condition += {" AND process = ?", {*selection.process}};
  constexpr std::string_view kColumns = "process, session, start_ns, end_ns";
  SqlPart sessions{
      "(SELECT process, session, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM ", {}};
  sessions += UnionOf({{kColumns, "kernels"},
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
  SqlPart busy{std::string(kUntil) + "(SELECT start_ns, end_ns FROM ", {}};
  busy += GpuWork({}, range, WorkIn::kRunsIn);
  busy.text += " WHERE device IN ";
  busy += DevicesMeant(selection, SessionReach(range));
  busy.text += "))";
  SqlPart seen{std::string(kUntil), {}};
  seen += GpuSessions(selection, range);
  seen.text += ")";

  SqlPart rows{"(SELECT samples.* FROM ", {}};
  rows += samples;
  rows.text += " AS samples ASOF JOIN ";
  rows += seen;
  rows.text += " AS seen ON samples.time_ns >= seen.start_ns ASOF LEFT JOIN ";
  rows += busy;
  rows.text +=
      " AS busy ON samples.time_ns >= busy.start_ns "
      "WHERE samples.time_ns < seen.until_ns AND coalesce(samples.time_ns >= busy.until_ns, true))";
  return rows;
}

}  // namespace gpusonde::store
