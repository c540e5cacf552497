// SPDX-License-Identifier: Apache-2.0
#include "store/queries/timeline_query.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/time_range.h"
#include "store/each_row.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"
#include "store/table_rows.h"

namespace gpusonde::store {
namespace {

// Events of a slice are sorted by start in memory. With this many, exports of 2.2 and 4.4 million pieces of
// work and as many calls peaked at 319 and 350 MB (docs/export.md).
constexpr int64_t kTimelineSliceRows = 500'000;

constexpr std::string_view kInTime = "start_ns >= ? AND start_ns < ?";

// The end of a row of ranges or incidents, `?` being the end of the data.
constexpr std::string_view kEnd = "coalesce(end_ns, greatest(start_ns, ?))";

SqlPart StartsIn(const TimeRange& range) { return {std::string(kInTime), {range.from_ns, range.to_ns}}; }

// GPU work that starts in the range, the columns in the order of ReadWork.
SqlPart TimelineWork(const model::Selection& selection, const TimeRange& range) {
  constexpr std::string_view kTables[] = {
      "SELECT 0 AS kind, process, device, session, correlation, context, stream, start_ns, end_ns, "
      "graph_node, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
      "coalesce(static_shared_bytes::HUGEINT + dynamic_shared_bytes, static_shared_bytes, "
      "dynamic_shared_bytes) AS shared_bytes, 0 AS bytes, '' AS copy, '' AS source_memory, '' AS "
      "target_memory FROM kernels",
      "SELECT 1, process, device, session, correlation, context, stream, start_ns, end_ns, graph_node, "
      "'', 0, 0, 0, 0, 0, 0, NULL, NULL, bytes, kind, source_memory, target_memory FROM memcpys",
      "SELECT 2, process, device, session, correlation, context, stream, start_ns, end_ns, graph_node, "
      "'', 0, 0, 0, 0, 0, 0, NULL, NULL, bytes, '', '', '' FROM memsets"};
  SqlPart work;
  for (const std::string_view table : kTables) {
    work.text += (work.text.empty() ? "" : " UNION ALL ") + std::string(table) + " WHERE ";
    work += StartsIn(range);
    work.text += " AND end_ns >= start_ns";
    work += AndOfProcesses(selection);
    if (selection.device.has_value()) work += {" AND device = ?", {*selection.device}};
    if (selection.stream.has_value()) work += {" AND stream = ?", {*selection.stream}};
  }
  work.text += " ORDER BY start_ns, end_ns";
  return work;
}

void ReadWork(const Rows& rows, model::GpuWork& work) {
  size_t column = 0;
  const auto next = [&] { return rows.Int64(column++); };
  work.kind = static_cast<model::GpuWork::Kind>(next());
  work.process = rows.Id(column++);
  work.device = rows.Id(column++);
  work.session = static_cast<int32_t>(next());
  work.correlation = next();
  work.context = next();
  work.stream = next();
  work.start_ns = next();
  work.end_ns = next();
  work.graph_node = OptionalInt64(rows, column++);
  work.name = rows.Text(column++);
  for (int64_t& extent : work.grid) extent = next();
  for (int64_t& extent : work.block) extent = next();
  work.registers = OptionalInt64(rows, column++);
  work.shared_bytes = OptionalInt64(rows, column++);
  work.bytes = next();
  work.copy = rows.Text(column++);
  work.source_memory = rows.Text(column++);
  work.target_memory = rows.Text(column++);
}

// Calls and ranges that start in the range, the columns in the order of ReadSpan.
SqlPart TimelineSpans(const model::Selection& selection, const TimeRange& range, int64_t end_ns) {
  SqlPart spans{
      "SELECT 0 AS kind, process, tid, session, correlation, start_ns, end_ns, domain, name FROM api_calls "
      "WHERE ",
      {}};
  spans += StartsIn(range);
  spans.text += " AND end_ns >= start_ns";
  spans += AndOfProcesses(selection);
  spans +=
      {" UNION ALL SELECT CASE kind WHEN 'operator' THEN 2 WHEN 'nvtx_start_end' THEN 3 ELSE 1 END, process, "
       "tid, 0, -1, start_ns, " +
           std::string(kEnd) + ", domain, name FROM ranges WHERE ",
       {end_ns}};
  spans += StartsIn(range);
  spans.text += " AND coalesce(end_ns, start_ns) >= start_ns";
  spans += AndOfProcesses(selection);
  spans.text += " ORDER BY start_ns, end_ns DESC, kind DESC";
  return spans;
}

void ReadSpan(const Rows& rows, model::ThreadSpan& span) {
  span.kind = static_cast<model::ThreadSpan::Kind>(rows.Int64(0));
  span.process = rows.Id(1);
  span.tid = static_cast<int32_t>(rows.Int64(2));
  span.session = static_cast<int32_t>(rows.Int64(3));
  span.correlation = rows.Int64(4);
  span.start_ns = rows.Int64(5);
  span.end_ns = rows.Int64(6);
  span.domain = rows.Text(7);
  span.name = rows.Text(8);
}

Status ReadSlice(Store& store, const model::Selection& selection, const TimeRange& slice, int64_t end_ns,
                 model::TimelineSink& sink, TimelineCounts& counts) {
  model::GpuWork work;
  TRY(ForEachRow(store, TimelineWork(selection, slice), [&](const Rows& row) {
    ReadWork(row, work);
    ++counts.gpu_work;
    return sink.Add(work);
  }));
  model::ThreadSpan span;
  return ForEachRow(store, TimelineSpans(selection, slice, end_ns), [&](const Rows& row) {
    ReadSpan(row, span);
    ++(span.kind == model::ThreadSpan::Kind::kCall ? counts.calls : counts.ranges);
    return sink.Add(span);
  });
}

Status ReadOfProcesses(Store& store, const model::Selection& selection, const TimeRange& range,
                       int64_t end_ns, model::TimelineSink& sink, TimelineCounts& counts) {
  SqlPart where{"WHERE ", {}};
  where += StartsIn(range);
  where += AndOfProcesses(selection);
  SqlPart of_steps = where;
  of_steps.text += " AND end_ns >= start_ns ORDER BY start_ns";
  TRY(ForEachRow(store, model::kSteps, of_steps.text, of_steps.parameters, [&](const model::Step& step) {
    ++counts.steps;
    return sink.Add(step);
  }));
  where.text += " ORDER BY start_ns";
  return ForEachRow(store, model::kIncidents, where.text, where.parameters, [&](model::Incident& incident) {
    ++counts.incidents;
    incident.end_ns = std::max(incident.start_ns, incident.end_ns.value_or(end_ns));
    return sink.Add(incident);
  });
}

Status ReadMetrics(Store& store, const model::Selection& selection, const TimeRange& range,
                   model::TimelineSink& sink, TimelineCounts& counts) {
  SqlPart where{"WHERE time_ns >= ? AND time_ns < ?", {range.from_ns, range.to_ns}};
  if (selection.device.has_value()) where += {" AND (device IS NULL OR device = ?)", {*selection.device}};
  if (!selection.processes.empty()) {
    where.text += " AND (process IS NULL OR ";
    where += IsOfProcesses(selection);
    where.text += ")";
  }
  return ForEachRow(store, model::kMetrics, where.text, where.parameters,
                    [&](const model::MetricValue& value) {
                      ++counts.metric_values;
                      return sink.Add(value);
                    });
}

}  // namespace

Result<TimelineCounts> ReadTimeline(Store& store, const model::Selection& selection,
                                    model::TimelineSink& sink) {
  const TimeRange range{std::max<int64_t>(selection.from_ns, 0), selection.to_ns};
  ASSIGN_OR_RETURN(const TimeRange known, ReadTimeRange(store, selection));
  model::TimelineNames names{.start_ns = known.from_ns};
  ASSIGN_OR_RETURN(names.processes, ReadTable(store, model::kProcesses));
  ASSIGN_OR_RETURN(names.threads, ReadTable(store, model::kThreads));
  ASSIGN_OR_RETURN(names.devices, ReadTable(store, model::kDevices, "ORDER BY ordinal, device"));
  TRY(sink.Begin(names));
  TimelineCounts counts;
  ASSIGN_OR_RETURN(const auto slices, ReadSlices(Asking(store), selection, range, kTimelineSliceRows));
  for (const TimeRange& slice : slices) TRY(ReadSlice(store, selection, slice, known.to_ns, sink, counts));
  TRY(ReadOfProcesses(store, selection, range, known.to_ns, sink, counts));
  TRY(ReadMetrics(store, selection, range, sink, counts));
  TRY(sink.End());
  return counts;
}

}  // namespace gpusonde::store
