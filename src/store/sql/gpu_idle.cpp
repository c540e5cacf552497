// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_idle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/saturated_sum.h"

namespace gpusonde::store {
namespace {

// Slots of 4 ms: at 10,000 kernels a second each of the 38 CPU samples a second of two CPUs is compared with
// some 40 kernels.
constexpr int64_t kSlotNs = int64_t{1} << 22;

// 2^32 / φ, and a bound that keeps the product of a second and it below 2^63; seconds reach it in 2038 and
// start again.
constexpr int64_t kGoldenStep = 2'654'435'761;
constexpr int64_t kCircle = int64_t{1} << 32;
constexpr int64_t kMaxSeconds = int64_t{1} << 31;

// Whether the second of a time is sampled.
std::string IsSampled(std::string_view time_ns, int64_t one_second_in) {
  return fmt::format("{} // {} % {} * {} % {} < {}", time_ns, kNanosPerSecond, kMaxSeconds, kGoldenStep,
                     kCircle, kCircle / one_second_in);
}

// A further condition on work (GpuTimes) that runs in a sampled second. Rows of at most a second touch two.
SqlPart RunsInSampledSecond(int64_t one_second_in) {
  if (one_second_in == 1) return {};
  return {fmt::format(" AND ({} OR {} OR end_ns - start_ns > {})", IsSampled("start_ns", one_second_in),
                      IsSampled("end_ns", one_second_in), kNanosPerSecond),
          {}};
}

SqlPart InSampledSeconds(SqlPart samples, int64_t one_second_in) {
  if (one_second_in == 1) return samples;
  samples.text =
      fmt::format("(SELECT * FROM {} WHERE {})", samples.text, IsSampled("time_ns", one_second_in));
  return samples;
}

// One second in how many to read.
Result<int64_t> ReadOneSecondIn(const Ask& ask, const TimeRange& range, const IdleLimits& limits) {
  SqlPart sql{
      fmt::format("SELECT {}, coalesce(max(start_ns) - min(start_ns), 0) FROM ", SaturatedSum("count")), {}};
  sql += GpuWorkSpans({}, range, WorkIn::kRunsIn);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(sql));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any || rows->Int64(0) <= limits.rows) return 1;
  const int64_t by_rows = (rows->Int64(0) - 1) / limits.rows + 1;
  const int64_t by_seconds = rows->Int64(1) / kNanosPerSecond / limits.seconds;
  return std::max<int64_t>(std::min({by_rows, by_seconds, kMaxSeconds}), 1);
}

// The devices that have to be idle; nothing: all of them.
Result<std::optional<std::vector<Id128>>> ReadDevicesMeant(const Ask& ask, const model::Selection& selection,
                                                           const TimeRange& range) {
  if (selection.device.has_value()) return std::vector{*selection.device};
  if (selection.processes.empty()) return std::nullopt;
  model::Selection of_process;
  of_process.processes = selection.processes;
  SqlPart used{"SELECT DISTINCT device FROM ", {}};
  used += GpuWorkSpans(of_process, SessionReach(range), WorkIn::kRunsIn);
  std::vector<Id128> devices;
  TRY(ForEachRow(ask, used, [&](const Rows& row) { devices.push_back(row.Id(0)); }));
  return devices.empty() ? std::nullopt : std::optional(std::move(devices));
}

// When idleness was observed, merged: in sessions of the selected processes, or in all if these have none.
Result<std::vector<TimeRange>> ReadWatched(const Ask& ask, const model::Selection& selection,
                                           const TimeRange& range) {
  SqlPart sql{"SELECT start_ns, end_ns FROM ", {}};
  sql += GpuSessions({}, range);
  if (!selection.processes.empty()) {
    const SqlPart is_selected = IsOfProcesses(selection);
    sql.text += " WHERE ";
    sql += is_selected;
    sql.text += " OR NOT EXISTS (SELECT 1 FROM gpu_sessions WHERE ";
    sql += is_selected;
    sql.text += ")";
  }
  sql.text += " ORDER BY start_ns";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(sql));
  return ReadUnion(*rows);
}

// One part of WhileGpuIdle.
SqlPart IdleIn(const TimeRange& range, const SqlPart& samples, std::span<const TimeRange> watched,
               const std::optional<std::vector<Id128>>& devices, int64_t one_second_in) {
  // Work of any process keeps the device busy. Unpacked once, since that is most of the cost.
  SqlPart rows{
      fmt::format("(WITH work AS MATERIALIZED (SELECT start_ns, end_ns, start_ns // {} AS slot FROM ",
                  kSlotNs),
      {}};
  rows += GpuTimes(range, RunsInSampledSecond(one_second_in));
  if (devices.has_value()) rows += {" WHERE device IN (SELECT unnest(?::UUID[]))", {*devices}};
  rows.text += "), moments AS (SELECT DISTINCT time_ns FROM ";
  rows += samples;
  // Moments in which work ran. Short work runs in the slot in which it starts or in the next one, so that a
  // hash join by slot finds it without sorting; long work is rare and sorted: a moment lies in some interval
  // if the latest end among the intervals that start before it is later.
  rows.text += fmt::format(
      "), busy AS (SELECT time_ns FROM (SELECT time_ns, unnest([time_ns // {0}, time_ns // {0} - 1]) AS slot "
      "FROM moments) JOIN work USING (slot) "
      "WHERE end_ns - start_ns <= {0} AND time_ns >= start_ns AND time_ns < end_ns UNION ALL "
      "SELECT time_ns FROM moments ASOF JOIN (SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns) AS "
      "until_ns "
      "FROM work WHERE end_ns - start_ns > {0}) AS long ON time_ns >= start_ns WHERE time_ns < until_ns)",
      kSlotNs);
  std::vector<std::string> intervals;
  for (const TimeRange& time : watched)
    intervals.push_back(fmt::format("({}, {})", time.from_ns, time.to_ns));
  rows.text += " SELECT samples.* FROM ";
  rows += samples;
  rows.text += fmt::format(
      " AS samples ASOF JOIN (VALUES {}) AS seen(start_ns, end_ns) ON samples.time_ns >= seen.start_ns "
      "WHERE samples.time_ns < seen.end_ns AND samples.time_ns NOT IN (SELECT time_ns FROM busy))",
      fmt::join(intervals, ", "));
  return rows;
}

}  // namespace

Result<IdleSamples> WhileGpuIdle(const Ask& ask, const SamplesIn& samples, const model::Selection& selection,
                                 const IdleLimits& limits) {
  const TimeRange range{std::max<int64_t>(selection.from_ns, 0), selection.to_ns};
  ASSIGN_OR_RETURN(const auto devices, ReadDevicesMeant(ask, selection, range));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> watched, ReadWatched(ask, selection, range));
  IdleSamples idle;
  ASSIGN_OR_RETURN(idle.one_second_in, ReadOneSecondIn(ask, range, limits));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                   ReadSlices(ask, {}, range, limits.slice_rows * idle.one_second_in));
  for (const TimeRange& slice : slices) {
    const auto first = std::ranges::upper_bound(watched, slice.from_ns, {}, &TimeRange::to_ns);
    const auto last = std::ranges::lower_bound(watched, slice.to_ns, {}, &TimeRange::from_ns);
    if (first < last)
      idle.parts.push_back(IdleIn(slice, InSampledSeconds(samples(slice), idle.one_second_in), {first, last},
                                  devices, idle.one_second_in));
  }
  return idle;
}

}  // namespace gpusonde::store
