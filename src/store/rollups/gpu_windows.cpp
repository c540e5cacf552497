// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/gpu_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/nearly_sorted.h"
#include "base/time.h"
#include "model/batch.h"
#include "model/tables/api_calls.h"
#include "model/tables/device_windows.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "store/duckdb/appender.h"
#include "store/duckdb/connection.h"
#include "store/rollups/pack_sums.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {
namespace {

// Longer work counts as busy for this long.
constexpr int64_t kLongestNs = 600 * kNanosPerSecond;

// Allowed lateness of work.
constexpr int64_t kBacklogNs = 600 * kNanosPerSecond;

// Sums of sums; a sketch is pairs of a bucket and its count.
constexpr std::string_view kHoursSql = R"(
  INSERT INTO {tables}kernel_windows BY NAME
  WITH minutes AS (
    SELECT *, start_ns - start_ns % {hour} AS hour_ns FROM {tables}kernel_windows
    WHERE part IN ('all', 'sampled', 'captured') AND start_ns >= {from} AND start_ns < {to}
      AND end_ns - start_ns = {minute}
  ), sums AS (
    SELECT hour_ns, part, process, device, name, graph, stream, stack, tid, sum(count)::BIGINT AS count,
           least(sum(duration_ns), 9223372036854775807)::BIGINT AS duration_ns, sum(weight) AS weight,
           sum(time_ns) AS time_ns, sum(variance_ns2) AS variance_ns2
    FROM minutes GROUP BY ALL
  ), buckets AS (
    SELECT hour_ns, part, process, device, name, graph, stream, stack, tid,
           unnest(list_slice(sketch, 1, len(sketch), 2)) AS bucket,
           unnest(list_slice(sketch, 2, len(sketch), 2)) AS n
    FROM minutes
  ), summed AS (
    SELECT hour_ns, part, process, device, name, graph, stream, stack, tid, bucket, sum(n)::BIGINT AS n
    FROM buckets GROUP BY ALL
  ), sketches AS (
    SELECT hour_ns, part, process, device, name, graph, stream, stack, tid,
           flatten(list([bucket, n] ORDER BY bucket)) AS sketch
    FROM summed GROUP BY ALL
  )
  SELECT sums.hour_ns AS start_ns, sums.hour_ns + {hour} AS end_ns, sums.* EXCLUDE (hour_ns),
         coalesce(sketch, []) AS sketch
  FROM sums LEFT JOIN sketches ON sums.hour_ns = sketches.hour_ns AND sums.part = sketches.part
    AND sums.process = sketches.process AND sums.device = sketches.device AND sums.name = sketches.name
    AND sums.graph = sketches.graph AND sums.stream IS NOT DISTINCT FROM sketches.stream
    AND sums.stack IS NOT DISTINCT FROM sketches.stack AND sums.tid IS NOT DISTINCT FROM sketches.tid)";

std::string TablesOf(std::string_view catalog) { return duckdb::QuoteName(catalog) + ".main."; }

Ask Asking(duckdb::Connection& connection) {
  return [&connection](const SqlPart& sql) { return connection.Ask(sql.text, sql.parameters); };
}

// What was started in a minute.
Status SumMinute(duckdb::Connection& connection, std::string_view catalog, const TimeRange& window) {
  const std::string tables = TablesOf(catalog);
  TRY(
      connection.Run(fmt::format("DELETE FROM {}kernel_windows WHERE part IN ('all', 'sampled', 'captured') "
                                 "AND start_ns = {} AND end_ns = {}",
                                 tables, window.from_ns, window.to_ns)));
  ASSIGN_OR_RETURN(std::vector<model::KernelWindow> sums,
                   SumWork(Asking(connection), {}, window, Sketches::kYes, tables));
  model::BatchBuilder builder(model::kKernelWindows);
  for (model::KernelWindow& row : sums) {
    row.start_ns = window.from_ns;
    row.end_ns = window.to_ns;
    builder.Append(row);
  }
  const model::Batch batch = builder.Take();
  return duckdb::AppendNew(connection, catalog, model::kKernelWindows.info(), {&batch, 1});
}

// The minutes in which anything was started or ran.
Result<std::vector<int64_t>> MinutesWithWork(duckdb::Connection& connection, const std::string& tables,
                                             const TimeRange& range) {
  SqlPart minutes{
      fmt::format("SELECT DISTINCT start_ns // {0} * {0} AS minute FROM ", kMinuteOfWork.length_ns), {}};
  minutes += GpuWorkSpans({}, range, WorkIn::kStartsIn, tables);
  minutes.text += fmt::format(
      " UNION SELECT DISTINCT unnest(range(greatest(start_ns, {0}) // {2}, "
      "(least(end_ns, {1} - 1, greatest(start_ns, {0}) + {3}) // {2}) + 1)) * {2} FROM ",
      range.from_ns, range.to_ns, kMinuteOfWork.length_ns, kLongestNs);
  minutes += GpuWorkSpans({}, range, WorkIn::kRunsIn, tables);
  minutes.text +=
      fmt::format(" WHERE start_ns // {0} < end_ns // {0} ORDER BY minute", kMinuteOfWork.length_ns);
  std::vector<int64_t> starts;
  TRY(ForEachRow(connection.Ask(minutes.text, minutes.parameters),
                 [&](const Rows& row) { starts.push_back(row.Int64(0)); }));
  return starts;
}

// The hours of the range, from their minutes, in the connection's transaction.
Status SumHours(duckdb::Connection& connection, const std::string& tables, const TimeRange& hours) {
  if (hours.from_ns >= hours.to_ns) return {};
  TRY(connection.Run(fmt::format(
      "DELETE FROM {}kernel_windows WHERE part IN ('all', 'sampled', 'captured') AND start_ns >= {} "
      "AND start_ns < {} AND end_ns - start_ns = {}",
      tables, hours.from_ns, hours.to_ns, kHourOfWork.length_ns)));
  return connection.Run(fmt::format(kHoursSql, fmt::arg("tables", tables),
                                    fmt::arg("hour", kHourOfWork.length_ns),
                                    fmt::arg("minute", kMinuteOfWork.length_ns),
                                    fmt::arg("from", hours.from_ns), fmt::arg("to", hours.to_ns)));
}

void AppendWindows(const TimeRange& minute, const DeviceTimes& busy, const WindowLevel& level,
                   std::vector<model::DeviceWindow>& rows) {
  const int64_t length_ns = level.length_ns;
  for (const auto& [device, times] : busy) {
    std::vector<int64_t> busy_ns(static_cast<size_t>(kMinuteOfBusy.length_ns / length_ns));
    for (const TimeRange& time : times)
      for (int64_t at_ns = time.from_ns - minute.from_ns; at_ns < time.to_ns - minute.from_ns;) {
        const int64_t end_ns = std::min(time.to_ns - minute.from_ns, (at_ns / length_ns + 1) * length_ns);
        busy_ns[static_cast<size_t>(at_ns / length_ns)] += end_ns - at_ns;
        at_ns = end_ns;
      }
    for (size_t i = 0; i < busy_ns.size(); ++i) {
      const int64_t start_ns = minute.from_ns + static_cast<int64_t>(i) * length_ns;
      if (busy_ns[i] > 0) rows.push_back({start_ns, start_ns + length_ns, device, busy_ns[i]});
    }
  }
}

Status SumDeviceWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& minute) {
  SqlPart work{"SELECT device, start_ns, end_ns FROM ", {}};
  work += GpuWork({}, minute, WorkIn::kRunsIn, Packs::kNone, TablesOf(catalog));
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, connection.Ask(work.text, work.parameters));
  DeviceTimes busy;
  TRY(AddPackedTimes(Asking(connection), {}, minute, TablesOf(catalog),
                     [&](const Id128&, const Id128& device) { return &busy[device]; }));
  TRY(AddTimes(*rows, minute, busy));
  MergeTimes(busy);
  TRY(connection.Run(fmt::format("DELETE FROM {}device_windows WHERE start_ns >= {} AND start_ns < {}",
                                 TablesOf(catalog), minute.from_ns, minute.to_ns)));
  std::vector<model::DeviceWindow> windows;
  for (const WindowLevel& level : {kTenthOfBusy, kSecondOfBusy, kMinuteOfBusy})
    AppendWindows(minute, busy, level, windows);
  model::BatchBuilder builder(model::kDeviceWindows);
  for (const model::DeviceWindow& window : windows) builder.Append(window);
  const model::Batch batch = builder.Take();
  return duckdb::AppendNew(connection, catalog, model::kDeviceWindows.info(), {&batch, 1});
}

class WorkRollupTables final : public RollupTables {
 public:
  explicit WorkRollupTables(std::function<int64_t()> epoch_now) : epoch_now_(std::move(epoch_now)) {}

  Traits traits() const override {
    return {.name = "GPU windows", .shortest = kMinuteOfWork, .open = kHourOfWork, .backlog_ns = kBacklogNs};
  }

  // Of work and of launches. The last is no later than now: timestamps are untrusted.
  std::optional<TimeRange> TimesOf(std::span<const model::Batch> batches) const override {
    constexpr std::array<std::string_view, 5> kTables = {model::kKernels.name(), model::kKernelPacks.name(),
                                                         model::kMemcpys.name(), model::kMemsets.name(),
                                                         model::kApiCalls.name()};
    std::optional<TimeRange> times;
    for (const model::Batch& batch : batches)
      if (std::ranges::find(kTables, batch.table) != kTables.end()) Widen(batch, "start_ns", times);
    if (times.has_value()) times->to_ns = std::min(times->to_ns, epoch_now_());
    return times;
  }

  // From the first minute on: its hour may have begun before there were sums.
  Result<Stored> Read(const Ask& ask, std::string_view catalog) const override {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Rows> rows,
        ask({fmt::format(
                 "SELECT from_ns, to_ns, oldest_ns, newest_ns FROM "
                 "(SELECT min(start_ns) FILTER (end_ns - start_ns = {1}) AS from_ns, max(end_ns) AS to_ns "
                 "FROM {0}kernel_windows WHERE part IN ('all', 'sampled', 'captured')), "
                 "(SELECT min(start_ns) AS oldest_ns, max(start_ns) AS newest_ns FROM "
                 "(SELECT start_ns FROM {0}kernels UNION ALL SELECT start_ns FROM {0}kernel_packs "
                 "UNION ALL SELECT start_ns FROM {0}memcpys UNION ALL SELECT start_ns FROM {0}memsets))",
                 TablesOf(catalog), kMinuteOfWork.length_ns),
             {}}));
    Stored stored;
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    if (!any) return stored;
    if (!rows->IsNull(2)) stored.oldest_ns = rows->Int64(2);
    if (!rows->IsNull(3)) stored.newest_ns = std::min(rows->Int64(3), epoch_now_());
    if (!rows->IsNull(0)) stored.summed = {rows->Int64(0), rows->Int64(1)};
    return stored;
  }

  Status Sum(duckdb::Connection& connection, std::string_view catalog,
             const TimeRange& range) const override {
    const std::string tables = TablesOf(catalog);
    const TimeRange whole{WindowStart(kMinuteOfWork, range.from_ns), WindowStart(kMinuteOfWork, range.to_ns)};
    if (whole.from_ns >= whole.to_ns) return {};
    ASSIGN_OR_RETURN(const std::vector<int64_t> minutes, MinutesWithWork(connection, tables, whole));
    // A file is summed until the end of its last minute (Read), so that each hour must be there by then: it
    // is summed with its last minute, or before a later one.
    int64_t hours_ns = WindowStart(kHourOfWork, whole.from_ns);  // the end of those that are
    for (const int64_t start_ns : minutes) {
      const TimeRange minute{start_ns, start_ns + kMinuteOfWork.length_ns};
      ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(connection));
      TRY(SumMinute(connection, catalog, minute));
      TRY(SumDeviceWindows(connection, catalog, minute));
      const int64_t end_ns = WindowStart(kHourOfWork, minute.to_ns);
      TRY(SumHours(connection, tables, {hours_ns, end_ns}));
      hours_ns = std::max(hours_ns, end_ns);
      TRY(transaction.Commit());
    }
    ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(connection));
    TRY(SumHours(connection, tables, {hours_ns, WindowStart(kHourOfWork, whole.to_ns)}));
    return transaction.Commit();
  }

  Result<int64_t> Correct(duckdb::Connection& connection, std::string_view catalog, const TimeRange& times,
                          const TimeRange& summed) const override {
    // After the clock was stepped back, sums end in the future, and work of now is not late.
    const int64_t oldest_ns = std::min(summed.to_ns, epoch_now_()) - kBacklogNs;
    const int64_t end_ns = std::max(
        WindowStart(kMinuteOfWork, std::clamp(times.from_ns, oldest_ns, summed.to_ns)), summed.from_ns);
    TRY(connection.Run(fmt::format(
        "DELETE FROM {}kernel_windows WHERE part IN ('all', 'sampled', 'captured') AND end_ns > {}",
        TablesOf(catalog), end_ns)));
    TRY(connection.Run(
        fmt::format("DELETE FROM {}device_windows WHERE end_ns > {}", TablesOf(catalog), end_ns)));
    return end_ns;
  }

 private:
  const std::function<int64_t()> epoch_now_;
};

}  // namespace

Status AddTimes(Rows& rows, const TimeRange& range, size_t start,
                const std::function<std::vector<TimeRange>*(const Rows& row)>& times_of) {
  return ForEachRow(rows, [&](const Rows& row) {
    const TimeRange time{std::max(row.Int64(start), range.from_ns),
                         std::min(row.Int64(start + 1), range.to_ns)};
    if (time.from_ns < time.to_ns) times_of(row)->push_back(time);
  });
}

Status AddTimes(Rows& rows, const TimeRange& range, DeviceTimes& work) {
  Id128 last_device;
  std::vector<TimeRange>* of_device = nullptr;
  return AddTimes(rows, range, 1, [&](const Rows& row) {
    const Id128 device = row.Id(0);  // mostly that of the row before
    if (of_device == nullptr || device != last_device) of_device = &work[device];
    last_device = device;
    return of_device;
  });
}

void MergeTimes(DeviceTimes& work) {
  std::erase_if(work, [](const auto& of_device) { return of_device.second.empty(); });
  for (auto& [device, times] : work) {
    SortNearlySorted(times, &TimeRange::from_ns);
    times = UnionOf(std::move(times));
  }
}

Result<DeviceTimes> ReadBusyTimes(Rows& rows, const TimeRange& range) {
  DeviceTimes work;
  TRY(AddTimes(rows, range, work));
  MergeTimes(work);
  return work;
}

std::unique_ptr<const RollupTables> WorkRollup(std::function<int64_t()> epoch_now) {
  return std::make_unique<WorkRollupTables>(std::move(epoch_now));
}

}  // namespace gpusonde::store
