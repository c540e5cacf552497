// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/read_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/metric_catalogue.h"
#include "store/duckdb/schema.h"
#include "store/each_row.h"
#include "store/queries/metric_query.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::fleet {
namespace {

using model::Metric;
using store::Rows;
using store::SqlPart;

// An hour's, once a second.
constexpr int64_t kMaxReadings = 3600;

// Columns of all work; a kernel's own follow. What a row is: 0 a kernel, 1 a copy, 2 a set.
constexpr std::string_view kKernelColumns =
    "0 AS what, process, context, stream, start_ns, end_ns, name, grid_x, grid_y, grid_z, block_x, block_y, "
    "block_z, registers, static_shared_bytes, dynamic_shared_bytes, 0 AS bytes";
constexpr std::string_view kNoLaunch = "0, 0, 0, 0, 0, 0, 0, 0, 0";

// Rows of second and count, of the device's work or of all.
SqlPart CountBySecond(const model::Selection& selection, const TimeRange& range) {
  SqlPart sql{"SELECT device, greatest(start_ns, ?) // ? AS second, sum(count) AS count FROM ",
              {range.from_ns, kNanosPerSecond}};
  sql += store::GpuWorkSpans(selection, range, store::WorkIn::kRunsIn);
  sql.text += " GROUP BY device, second";
  return sql;
}

// A condition on rows of work of a device.
SqlPart InWindow(Id128 device, const TimeRange& window, store::WorkIn which) {
  return {which == store::WorkIn::kRunsIn
              ? "device = ? AND end_ns > ? AND start_ns < ? AND end_ns > start_ns AND start_ns >= 0"
              : "device = ? AND start_ns >= ? AND start_ns < ? AND end_ns > start_ns",
          {device, window.from_ns, window.to_ns}};
}

ObservationBuilder::Kernel KernelOf(const Rows& row) {
  return {.process = row.Id(1),
          .context = row.Int64(2),
          .stream = row.Int64(3),
          .name = row.Text(6),
          .grid = {row.Int64(7), row.Int64(8), row.Int64(9)},
          .block = {row.Int64(10), row.Int64(11), row.Int64(12)},
          .registers = row.Int64(13),
          .static_shared_bytes = row.Int64(14),
          .dynamic_shared_bytes = row.Int64(15),
          .duration_ns = row.Int64(5) - row.Int64(4)};
}

}  // namespace

Result<std::map<Id128, int64_t>> CountWork(store::Store& store, const TimeRange& range) {
  SqlPart sql{"SELECT device, least(sum(count), 9223372036854775807)::BIGINT FROM ", {}};
  sql += store::GpuWorkSpans({}, range, store::WorkIn::kRunsIn);
  sql.text += " GROUP BY device";
  std::map<Id128, int64_t> counts;
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) { counts[row.Id(0)] = row.Int64(1); }));
  return counts;
}

Result<std::vector<TimeRange>> WindowsOf(store::Store& store, Id128 device, const TimeRange& range,
                                         int64_t total, const SampleSize& size) {
  if (total <= size.operations) return std::vector<TimeRange>{range};
  const Id128 seed = IdHasher("fleet observation")
                         .Add(device)
                         .Add(static_cast<uint64_t>(range.from_ns))
                         .Add(static_cast<uint64_t>(range.to_ns))
                         .Finish();
  WindowChooser chooser(total, size, seed.low);
  SqlPart sql{"SELECT second * ?, least(count, 9223372036854775807)::BIGINT FROM (", {kNanosPerSecond}};
  sql += CountBySecond({.device = device}, range);
  sql.text += ") WHERE count > 0 ORDER BY second";
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) { chooser.Add(row.Int64(0), row.Int64(1)); }));
  std::vector<TimeRange> windows;
  for (const TimeRange& window : chooser.Finish()) {
    const TimeRange within{std::max(window.from_ns, range.from_ns), std::min(window.to_ns, range.to_ns)};
    if (within.from_ns < within.to_ns) windows.push_back(within);
  }
  return windows;
}

Status ReadWindow(store::Store& store, Id128 device, const TimeRange& range, const TimeRange& window,
                  int64_t limit, ObservationBuilder& builder) {
  const auto which = window.from_ns == range.from_ns ? store::WorkIn::kRunsIn : store::WorkIn::kStartsIn;
  const SqlPart condition = InWindow(device, window, which);
  SqlPart sql{fmt::format("SELECT {} FROM raw.kernels WHERE ", kKernelColumns), {}};
  sql += condition;
  sql.text += fmt::format(
      " UNION ALL SELECT {} FROM (SELECT process, device, context, stream, {}, name, grid_x, grid_y, grid_z, "
      "block_x, block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes FROM kernel_packs "
      "WHERE {} AND ",
      kKernelColumns, store::duckdb::kPackedTimes, store::duckdb::kSoundPack);
  sql += store::PacksIn({.device = device}, window, which);
  sql.text += ") WHERE ";
  sql += condition;
  sql.text += fmt::format(
      " UNION ALL SELECT 1, process, context, stream, start_ns, end_ns, kind, {}, bytes FROM memcpys WHERE ",
      kNoLaunch);
  sql += condition;
  sql.text += fmt::format(
      " UNION ALL SELECT 2, process, context, stream, start_ns, end_ns, '', {}, bytes FROM memsets WHERE ",
      kNoLaunch);
  sql += condition;
  sql += {" ORDER BY start_ns, end_ns LIMIT ?", {limit}};
  builder.BeginWindow();
  return store::ForEachRow(store, sql, [&](const Rows& row) {
    if (row.Int64(0) == 0)
      builder.AddKernel(KernelOf(row));
    else if (row.Int64(0) == 1)
      builder.AddCopy(row.Text(6), row.Int64(16), row.Int64(5) - row.Int64(4));
    else
      builder.AddSet();
  });
}

Status ReadActivity(store::Store& store, Id128 device, const TimeRange& range, ObservationBuilder& builder) {
  constexpr std::array kActivity = {Metric::kGpuSmActive, Metric::kGpuTensorActive, Metric::kGpuDramActive};
  std::vector<std::string> values;
  for (const Metric metric : kActivity)
    values.push_back(fmt::format("max(value) FILTER (metric = '{}')", model::InfoOf(metric).name));
  const SqlPart sql{
      fmt::format("SELECT {} FROM metrics WHERE process IS NULL AND device = ? AND metric IN ({}) AND "
                  "isfinite(value) AND time_ns >= ? AND time_ns < ? GROUP BY time_ns "
                  "HAVING count(DISTINCT metric) = {} ORDER BY hash(time_ns) LIMIT ?",
                  fmt::join(values, ", "), store::ListNames(kActivity), kActivity.size()),
      {device, range.from_ns, range.to_ns, kMaxReadings}};
  constexpr double kPercent = 0.01;
  return store::ForEachRow(store, sql, [&](const Rows& row) {
    builder.AddActivity({.sm = kPercent * row.Float64(0),
                         .tensor = kPercent * row.Float64(1),
                         .dram = kPercent * row.Float64(2)});
  });
}

}  // namespace gpusonde::fleet
