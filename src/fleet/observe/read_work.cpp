// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/read_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/metric_catalogue.h"
#include "store/duckdb/schema.h"
#include "store/each_row.h"
#include "store/queries/metric_query.h"
#include "store/rollups/packs.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::fleet {
namespace {

using model::Metric;
using store::Rows;
using store::SqlPart;

// An hour's, once a second.
constexpr int64_t kMaxReadings = 3600;

// Of a kernel or a pack of kernels. Of others the name is a text of theirs, and the rest of no meaning.
constexpr std::string_view kLaunchColumns =
    "process, context, stream, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
    "static_shared_bytes, dynamic_shared_bytes";
constexpr const char* kOtherColumns = "process, context, stream, {}, 0, 0, 0, 0, 0, 0, 0, 0, 0";

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

// Work with a row of its own in the window, by start, the first ones: whether it is a kernel (0), a copy (1)
// or a set (2), kLaunchColumns, start, end and bytes.
SqlPart RowsIn(Id128 device, const TimeRange& window, store::WorkIn which, int64_t limit) {
  const SqlPart condition = InWindow(device, window, which);
  SqlPart sql{
      fmt::format("SELECT 0, {}, start_ns, end_ns, 0 AS bytes FROM raw.kernels WHERE ", kLaunchColumns), {}};
  sql += condition;
  sql.text += fmt::format(" UNION ALL SELECT 1, {}, start_ns, end_ns, bytes FROM memcpys WHERE ",
                          fmt::format(fmt::runtime(kOtherColumns), "kind"));
  sql += condition;
  sql.text += fmt::format(" UNION ALL SELECT 2, {}, start_ns, end_ns, bytes FROM memsets WHERE ",
                          fmt::format(fmt::runtime(kOtherColumns), "''"));
  sql += condition;
  sql += {" ORDER BY start_ns, end_ns LIMIT ?", {limit}};
  return sql;
}

// The kernel of a row with kLaunchColumns from the second column on.
ObservationBuilder::Kernel LaunchOf(const Rows& row) {
  return {.process = row.Id(1),
          .context = row.Int64(2),
          .stream = row.Int64(3),
          .name = row.Text(4),
          .grid = {row.Int64(5), row.Int64(6), row.Int64(7)},
          .block = {row.Int64(8), row.Int64(9), row.Int64(10)},
          .registers = row.Int64(11),
          .static_shared_bytes = row.Int64(12),
          .dynamic_shared_bytes = row.Int64(13)};
}

// Kernels of packs, by start.
struct PackedKernels {
  struct Kernel {
    int64_t start_ns = 0;
    int64_t duration_ns = 0;
    size_t launch = 0;
  };
  std::set<std::string, std::less<>> names;
  std::vector<ObservationBuilder::Kernel> launches;  // without durations
  std::vector<Kernel> kernels;

  // Keeps the first ones.
  void Shrink(size_t limit) {
    if (kernels.size() <= limit) return;
    std::ranges::nth_element(kernels, kernels.begin() + static_cast<ptrdiff_t>(limit), {}, &Kernel::start_ns);
    kernels.resize(limit);
  }
};

// The device's packed kernels in the window, at most `limit`. DuckDB needs more time to unpack them.
Result<PackedKernels> ReadPacks(store::Store& store, Id128 device, const TimeRange& window,
                                store::WorkIn which, int64_t limit) {
  SqlPart sql{fmt::format("SELECT 0, {}, start_ns, offsets_ns, durations_ns FROM kernel_packs WHERE {} AND ",
                          kLaunchColumns, store::duckdb::kSoundPack),
              {}};
  sql += store::PacksIn({.device = device}, window, which);
  PackedKernels packed;
  const auto most = static_cast<size_t>(limit);
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) {
    if (packed.launches.size() >= 2 * most) return;  // of a file that counts falsely
    const store::Pack pack{.name = {},
                           .second_ns = row.Int64(14),
                           .offsets_ns = row.Int64List(15),
                           .durations_ns = row.Int64List(16),
                           .correlations = {},
                           .graph_nodes = {}};
    const size_t before = packed.kernels.size();
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      const int64_t duration_ns = pack.DurationNs(i);
      const int64_t first_ns = which == store::WorkIn::kRunsIn ? start_ns + duration_ns - 1 : start_ns;
      if (duration_ns > 0 && first_ns >= window.from_ns && start_ns < window.to_ns)
        packed.kernels.push_back({start_ns, duration_ns, packed.launches.size()});
    }
    if (packed.kernels.size() == before) return;
    packed.launches.push_back(LaunchOf(row));
    ObservationBuilder::Kernel& launch = packed.launches.back();
    launch.name = *packed.names.emplace(launch.name).first;
    if (packed.kernels.size() >= 2 * most) packed.Shrink(most);
  }));
  packed.Shrink(most);
  std::ranges::sort(packed.kernels, {}, &PackedKernels::Kernel::start_ns);
  return packed;
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
  ASSIGN_OR_RETURN(const PackedKernels packed, ReadPacks(store, device, window, which, limit));
  builder.BeginWindow();
  int64_t left = limit;
  size_t next = 0;
  const auto add_packed = [&](int64_t before_ns) {
    for (; left > 0 && next < packed.kernels.size() && packed.kernels[next].start_ns < before_ns; ++next) {
      ObservationBuilder::Kernel kernel = packed.launches[packed.kernels[next].launch];
      kernel.duration_ns = packed.kernels[next].duration_ns;
      builder.AddKernel(kernel);
      --left;
    }
  };
  TRY(store::ForEachRow(store, RowsIn(device, window, which, limit), [&](const Rows& row) {
    add_packed(row.Int64(14));
    if (left == 0) return;
    --left;
    const int64_t duration_ns = row.Int64(15) - row.Int64(14);
    if (row.Int64(0) == 1) return builder.AddCopy(row.Text(4), row.Int64(16), duration_ns);
    if (row.Int64(0) == 2) return builder.AddSet();
    ObservationBuilder::Kernel kernel = LaunchOf(row);
    kernel.duration_ns = duration_ns;
    builder.AddKernel(kernel);
  }));
  add_packed(std::numeric_limits<int64_t>::max());
  return {};
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
