// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/work_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/time.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"

namespace gpusonde::store {
namespace {

// Correlation ids are 32-bit and come again; a launch and its work are never this far apart.
constexpr int64_t kCorrelationReachNs = 60 * kNanosPerSecond;

// A launch is sampled whole, so all that it started is one duration.
//
// The node of a graph that ran is a clone of one in the graph before, and so on back to the one that was
// captured or made, which has the stack. Sessions only grow: a node is looked for in its own and older ones.
constexpr std::string_view kSumsSql = R"(
  WITH RECURSIVE work AS {kept} (SELECT * FROM {work}),
  calls AS (
    SELECT process, session, correlation, start_ns, tid, stack, probability FROM {tables}api_calls
    WHERE stack IS NOT NULL AND probability > 0 AND probability <= 1 AND start_ns >= ? AND start_ns < ?
  ), origins AS (
    SELECT process, session, node, original_node, stack, 0 AS steps FROM {tables}graph_nodes
    UNION ALL
    SELECT origins.process, origins.session, origins.node, nodes.original_node, nodes.stack, steps + 1
    FROM origins JOIN {tables}graph_nodes AS nodes
      ON nodes.process = origins.process AND nodes.node = origins.original_node AND nodes.session <= origins.session
    WHERE origins.stack IS NULL AND origins.original_node IS NOT NULL AND steps < 16
  ), captured AS (
    SELECT process, session, node, min(stack) AS stack FROM origins WHERE stack IS NOT NULL
    GROUP BY process, session, node
  ), graph_work AS (
    SELECT work.*, captured.stack FROM (SELECT * FROM work WHERE graph_node IS NOT NULL) AS work
    ASOF LEFT JOIN captured ON work.process = captured.process AND work.graph_node = captured.node
      AND work.session >= captured.session
  ), launched AS NOT MATERIALIZED (
    SELECT process, device, session, correlation, stream, start_ns, end_ns, name, false AS graph
    FROM work WHERE graph_node IS NULL
    UNION ALL
    SELECT process, device, session, correlation, stream, start_ns, end_ns, name, true AS graph
    FROM graph_work WHERE stack IS NULL
  ), launches AS (
    SELECT process, device, name, graph, stream, stack, tid, any_value(probability) AS p,
           sum(launched.end_ns - launched.start_ns)::DOUBLE AS duration
    FROM launched JOIN calls USING (process, session, correlation)
    WHERE abs(launched.start_ns - calls.start_ns) < {reach}
    GROUP BY process, device, name, graph, stream, stack, tid, session, correlation, calls.start_ns
  )
  {counted}
  UNION ALL
  SELECT 'sampled', process, device, name, graph, 0, 0, stack, tid, stream, sum(1 / p), sum(duration / p),
         sum((1 - p) / (p * p) * duration * duration), []
  FROM launches GROUP BY process, device, name, graph, stack, tid, stream)";

// Work that is counted: all that was launched, and what was captured by its stack.
constexpr std::string_view kCountedSql = R"(
  SELECT 'all' AS part, process, device, name, graph, count(*) AS count,
         least(sum(end_ns - start_ns), 9223372036854775807)::BIGINT AS duration_ns, NULL::UUID AS stack,
         NULL::INTEGER AS tid, stream, 0::DOUBLE AS weight, 0::DOUBLE AS time_ns, 0::DOUBLE AS variance_ns2,
         []::BIGINT[] AS sketch
  FROM launched GROUP BY process, device, name, graph, stream
  UNION ALL
  SELECT 'captured', process, device, name, true, count(*),
         least(sum(end_ns - start_ns), 9223372036854775807)::BIGINT, stack, NULL, stream, 0, 0, 0, []
  FROM graph_work WHERE stack IS NOT NULL GROUP BY process, device, name, stack, stream)";

// The same with sketches: durations by bucket first, as model::Sketch::BucketOf has them. A double is enough
// to find the highest bit, but for rounding up to the next.
constexpr std::string_view kSketchedSql = R"(
  SELECT part, process, device, name, graph, sum(n)::BIGINT AS count,
         least(sum(duration), 9223372036854775807)::BIGINT AS duration_ns, stack, NULL::INTEGER AS tid, stream,
         0::DOUBLE AS weight, 0::DOUBLE AS time_ns, 0::DOUBLE AS variance_ns2,
         flatten(list([bucket, n] ORDER BY bucket)) AS sketch
  FROM (
    SELECT part, process, device, name, graph, stream, stack, count(*) AS n, sum(duration) AS duration,
           CASE WHEN capped < 128 THEN capped ELSE ((bit - 6) << 6) + (capped >> (bit - 6)) END AS bucket
    FROM (
      SELECT *, highest - (1::BIGINT << highest > capped)::BIGINT AS bit
      FROM (
        SELECT *, least(duration, 4611686018427387904) AS capped,
               floor(log2(greatest(capped, 1)))::BIGINT AS highest
        FROM (
          SELECT 'all' AS part, process, device, name, graph, stream, NULL::UUID AS stack,
                 end_ns - start_ns AS duration FROM launched
          UNION ALL
          SELECT 'captured', process, device, name, true, stream, stack, end_ns - start_ns FROM graph_work
          WHERE stack IS NOT NULL)))
    GROUP BY ALL)
  GROUP BY part, process, device, name, graph, stream, stack)";

constexpr std::string_view kWindowsSql =
    "SELECT part, process, device, name, graph, least(sum(count), 9223372036854775807)::BIGINT AS count, "
    "least(sum(duration_ns), 9223372036854775807)::BIGINT AS duration_ns, stack, tid, stream, "
    "sum(weight) AS weight, sum(time_ns) AS time_ns, sum(variance_ns2) AS variance_ns2 FROM kernel_windows "
    "WHERE {} GROUP BY part, process, device, name, graph, stack, tid, stream";

SqlPart& operator<<(SqlPart& part, const model::Selection& selection) {
  part += AndOfProcesses(selection);
  if (selection.device.has_value()) part += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value())
    part += {" AND stream = ?", {*selection.stream}};
  return part;
}

SqlPart SumsWhere(SqlPart condition) {
  return {fmt::format(kWindowsSql, condition.text), std::move(condition.parameters)};
}

}  // namespace

bool MayHaveStarted(int64_t launch_ns, int64_t work_ns) {
  int64_t apart_ns = 0;
  return !__builtin_sub_overflow(work_ns, launch_ns, &apart_ns) && apart_ns > -kCorrelationReachNs &&
         apart_ns < kCorrelationReachNs;
}

TimeRange LaunchReach(const TimeRange& range) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() - kCorrelationReachNs;
  return {std::max<int64_t>(std::max<int64_t>(range.from_ns, 0) - kCorrelationReachNs, 0),
          std::min(range.to_ns, kLatest) + kCorrelationReachNs};
}

SqlPart SumsOfWork(const model::Selection& selection, const TimeRange& range, Sketches sketches,
                   const std::string& tables) {
  const SqlPart work = GpuWork(selection, range, WorkIn::kStartsIn, Packs::kGraphs, tables);
  const TimeRange calls = LaunchReach(range);
  // The work of a live store's minute is little but in packs, whose lists are large and would be read by each
  // part of the statement at once: that takes more memory than it has.
  SqlPart sums{fmt::format(kSumsSql, fmt::arg("work", work.text), fmt::arg("tables", tables),
                           fmt::arg("kept", sketches == Sketches::kYes ? "MATERIALIZED" : "NOT MATERIALIZED"),
                           fmt::arg("reach", kCorrelationReachNs),
                           fmt::arg("counted", sketches == Sketches::kYes ? kSketchedSql : kCountedSql)),
               work.parameters};
  return sums += {"", {calls.from_ns, calls.to_ns}};
}

SqlPart SumsOfWindows(const model::Selection& selection, const TimeRange& range, int64_t length_ns) {
  SqlPart condition{
      "part IN ('all', 'sampled', 'captured') AND start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ?",
      {range.from_ns, range.to_ns, length_ns}};
  return SumsWhere(condition << selection);
}

SqlPart SumsOfLost(const model::Selection& selection, const TimeRange& range) {
  SqlPart condition{
      "part NOT IN ('all', 'sampled', 'captured') AND count >= 0 AND duration_ns >= 0 AND start_ns >= ? AND "
      "start_ns < ?",
      {range.from_ns, range.to_ns}};
  return SumsWhere(condition << selection);
}

}  // namespace gpusonde::store
