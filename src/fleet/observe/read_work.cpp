// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/read_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

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

// Operations that one statement reads; bounds memory.
constexpr int64_t kMaxAtOnce = 400'000;

// Of a kernel or a pack of kernels. Of others the name is a text of theirs, and the rest of no meaning.
constexpr std::string_view kLaunchColumns =
    "process, context, stream, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
    "static_shared_bytes, dynamic_shared_bytes";
constexpr const char* kOtherColumns = "process, context, stream, {}, 0, 0, 0, 0, 0, 0, 0, 0, 0";

// The device's work in disjoint windows, sorted by time.
struct Place {
  Id128 device;
  std::span<const TimeRange> windows;  // not empty
  store::WorkIn which = store::WorkIn::kStartsIn;

  // The window that such work belongs to.
  std::optional<size_t> WindowOf(int64_t start_ns, int64_t end_ns) const {
    const auto later = std::ranges::upper_bound(windows, start_ns, {}, &TimeRange::from_ns);
    if (later == windows.begin())
      return which == store::WorkIn::kRunsIn && end_ns > windows.front().from_ns ? std::optional<size_t>(0)
                                                                                 : std::nullopt;
    const auto window = static_cast<size_t>(later - windows.begin()) - 1;
    return start_ns < windows[window].to_ns ? std::optional(window) : std::nullopt;
  }
};

// A condition on the device and, by `in_window`, on the time. One statement about all windows: each costs the
// time to plan it, which grows with the days of the store. DuckDB 1.4 skips what lies in no window as long as
// the condition is on a single column.
SqlPart InWindows(const Place& place, const std::function<SqlPart(const TimeRange&)>& in_window) {
  SqlPart condition{"device = ? AND (", {place.device}};
  std::string_view separator;
  for (const TimeRange& window : place.windows) {
    condition.text += std::exchange(separator, " OR ");
    condition += in_window(window).InBrackets();
  }
  condition.text += ")";
  return condition;
}

// A condition on work with a row of its own.
SqlPart RowsIn(const Place& place) {
  SqlPart condition = InWindows(place, [&](const TimeRange& window) {
    return SqlPart{place.which == store::WorkIn::kRunsIn ? "end_ns > ? AND start_ns < ?"
                                                         : "start_ns >= ? AND start_ns < ?",
                   {window.from_ns, window.to_ns}};
  });
  condition.text += " AND end_ns > start_ns AND start_ns >= 0";
  return condition;
}

// A condition on packs that may have kernels of the place.
SqlPart PacksIn(const Place& place) {
  SqlPart condition{fmt::format("{} AND ", store::duckdb::kSoundPack), {}};
  condition +=
      InWindows(place, [&](const TimeRange& window) { return store::PacksIn({}, window, place.which); });
  return condition;
}

// How many operations ReadPacks and WorkRows would read.
Result<int64_t> CountIn(store::Store& store, const Place& place) {
  const SqlPart rows = RowsIn(place);
  SqlPart sql{"SELECT coalesce(least(sum(count), 9223372036854775807), 0)::BIGINT FROM (", {}};
  for (const char* const table : {"raw.kernels", "memcpys", "memsets"}) {
    sql.text += fmt::format("SELECT count(*) AS count FROM {} WHERE ", table);
    sql += rows;
    sql.text += " UNION ALL ";
  }
  sql.text += "SELECT sum(count) FROM kernel_packs WHERE ";
  sql += PacksIn(place);
  sql.text += ")";
  int64_t count = 0;
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) { count = row.Int64(0); }));
  return count;
}

// Work with a row of its own by start, the first ones: whether it is a kernel (0), a copy (1) or a set (2),
// kLaunchColumns, start, end and bytes.
SqlPart WorkRows(const Place& place, int64_t limit) {
  const SqlPart condition = RowsIn(place);
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

// Kernels of packs.
struct PackedKernels {
  struct Kernel {
    int64_t start_ns = 0;
    int64_t duration_ns = 0;
    size_t launch = 0;
  };
  std::set<std::string, std::less<>> names;
  std::vector<ObservationBuilder::Kernel> launches;  // without durations
  std::vector<std::vector<Kernel>> windows;          // by start

  // Keeps the first ones of a window.
  static void Shrink(size_t limit, std::vector<Kernel>& kernels) {
    if (kernels.size() <= limit) return;
    std::ranges::nth_element(kernels, kernels.begin() + static_cast<ptrdiff_t>(limit), {}, &Kernel::start_ns);
    kernels.resize(limit);
  }
};

// The packed kernels of a place, at most `limit` of each window. DuckDB needs more time to unpack them.
Result<PackedKernels> ReadPacks(store::Store& store, const Place& place, int64_t limit) {
  SqlPart sql{fmt::format("SELECT 0, {}, start_ns, offsets_ns, durations_ns FROM kernel_packs WHERE ",
                          kLaunchColumns),
              {}};
  sql += PacksIn(place);
  PackedKernels packed;
  packed.windows.resize(place.windows.size());
  const auto most = static_cast<size_t>(limit);
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) {
    if (packed.launches.size() >= 2 * most * packed.windows.size()) return;  // of a file that counts falsely
    const store::Pack pack{.name = {},
                           .second_ns = row.Int64(14),
                           .offsets_ns = row.Int64List(15),
                           .durations_ns = row.Int64List(16),
                           .correlations = {},
                           .graph_nodes = {}};
    bool any = false;
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      const int64_t duration_ns = pack.DurationNs(i);
      const std::optional<size_t> window = place.WindowOf(start_ns, start_ns + duration_ns);
      if (duration_ns <= 0 || !window.has_value()) continue;
      std::vector<PackedKernels::Kernel>& kernels = packed.windows[*window];
      kernels.push_back({start_ns, duration_ns, packed.launches.size()});
      if (kernels.size() >= 2 * most) PackedKernels::Shrink(most, kernels);
      any = true;
    }
    if (!any) return;
    packed.launches.push_back(LaunchOf(row));
    ObservationBuilder::Kernel& launch = packed.launches.back();
    launch.name = *packed.names.emplace(launch.name).first;
  }));
  for (std::vector<PackedKernels::Kernel>& kernels : packed.windows) {
    PackedKernels::Shrink(most, kernels);
    std::ranges::sort(kernels, {}, &PackedKernels::Kernel::start_ns);
  }
  return packed;
}

// Adds the first `limit` operations of each window, in time order.
class WindowReader {
 public:
  WindowReader(const Place& place, PackedKernels packed, int64_t limit, ObservationBuilder& builder)
      : place_(place), packed_(std::move(packed)), limit_(limit), builder_(builder) {
    Begin(0);
  }

  // Rows of WorkRows, in its order.
  void Add(const Rows& row) {
    const int64_t start_ns = row.Int64(14);
    const int64_t end_ns = row.Int64(15);
    const std::optional<size_t> window = place_.WindowOf(start_ns, end_ns);
    if (!window.has_value()) return;
    MoveTo(*window);
    AddPacked(start_ns);
    if (left_ == 0) return;
    --left_;
    const int64_t duration_ns = end_ns - start_ns;
    if (row.Int64(0) == 1) return builder_.AddCopy(row.Text(4), row.Int64(16), duration_ns);
    if (row.Int64(0) == 2) return builder_.AddSet();
    ObservationBuilder::Kernel kernel = LaunchOf(row);
    kernel.duration_ns = duration_ns;
    builder_.AddKernel(kernel);
  }

  void Finish() {
    MoveTo(place_.windows.size() - 1);
    AddPacked(kLatest);
  }

 private:
  static constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();

  void Begin(size_t window) {
    builder_.BeginWindow();
    window_ = window;
    left_ = limit_;
    next_ = 0;
  }

  void MoveTo(size_t window) {
    while (window_ < window) {
      AddPacked(kLatest);
      Begin(window_ + 1);
    }
  }

  void AddPacked(int64_t before_ns) {
    const std::vector<PackedKernels::Kernel>& kernels = packed_.windows[window_];
    for (; left_ > 0 && next_ < kernels.size() && kernels[next_].start_ns < before_ns; ++next_) {
      ObservationBuilder::Kernel kernel = packed_.launches[kernels[next_].launch];
      kernel.duration_ns = kernels[next_].duration_ns;
      builder_.AddKernel(kernel);
      --left_;
    }
  }

  const Place& place_;
  const PackedKernels packed_;
  const int64_t limit_;
  ObservationBuilder& builder_;
  size_t window_ = 0;
  int64_t left_ = 0;
  size_t next_ = 0;  // of the window's packed kernels
};

Status ReadPlace(store::Store& store, const Place& place, int64_t limit, ObservationBuilder& builder) {
  if (place.windows.size() > 1) {
    ASSIGN_OR_RETURN(const int64_t count, CountIn(store, place));
    if (count > kMaxAtOnce) {
      const size_t half = place.windows.size() / 2;
      TRY(ReadPlace(store, {place.device, place.windows.first(half), place.which}, limit, builder));
      return ReadPlace(store, {place.device, place.windows.subspan(half), place.which}, limit, builder);
    }
  }
  ASSIGN_OR_RETURN(PackedKernels packed, ReadPacks(store, place, limit));
  WindowReader reader(place, std::move(packed), limit, builder);
  const int64_t most = place.windows.size() > 1 ? kMaxAtOnce : limit;
  TRY(store::ForEachRow(store, WorkRows(place, most), [&](const Rows& row) { reader.Add(row); }));
  reader.Finish();
  return {};
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

Result<std::map<Id128, std::vector<TimeRange>>> ChooseWindows(store::Store& store,
                                                              const std::map<Id128, int64_t>& counts,
                                                              const TimeRange& range,
                                                              const SampleSize& size) {
  std::map<Id128, std::vector<TimeRange>> windows;
  std::map<Id128, WindowChooser> choosers;
  std::vector<Id128> sampled;
  for (const auto& [device, total] : counts) {
    if (total <= size.operations) {
      windows[device] = {range};
      continue;
    }
    const Id128 seed = IdHasher("fleet observation")
                           .Add(device)
                           .Add(static_cast<uint64_t>(range.from_ns))
                           .Add(static_cast<uint64_t>(range.to_ns))
                           .Finish();
    choosers.try_emplace(device, total, size, seed.low);
    sampled.push_back(device);
  }
  if (sampled.empty()) return windows;
  SqlPart sql{
      "SELECT device, second * ?, least(count, 9223372036854775807)::BIGINT FROM ("
      "SELECT device, greatest(start_ns, ?) // ? AS second, sum(count) AS count FROM ",
      {kNanosPerSecond, range.from_ns, kNanosPerSecond}};
  sql += store::GpuWorkSpans({}, range, store::WorkIn::kRunsIn);
  sql += {" WHERE list_contains(?, device) GROUP BY device, second) WHERE count > 0 ORDER BY second",
          {std::move(sampled)}};
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) {
    if (const auto chooser = choosers.find(row.Id(0)); chooser != choosers.end())
      chooser->second.Add(row.Int64(1), row.Int64(2));
  }));
  for (auto& [device, chooser] : choosers)
    for (const TimeRange& window : chooser.Finish()) {
      const TimeRange within{std::max(window.from_ns, range.from_ns), std::min(window.to_ns, range.to_ns)};
      if (within.from_ns < within.to_ns) windows[device].push_back(within);
    }
  return windows;
}

Status ReadWindows(store::Store& store, Id128 device, const TimeRange& range,
                   std::span<const TimeRange> windows, int64_t limit, ObservationBuilder& builder) {
  const bool from_begin = !windows.empty() && windows.front().from_ns == range.from_ns;
  const auto first = windows.first(from_begin ? 1 : 0);
  const auto others = windows.subspan(first.size());
  if (!first.empty()) TRY(ReadPlace(store, {device, first, store::WorkIn::kRunsIn}, limit, builder));
  if (!others.empty()) TRY(ReadPlace(store, {device, others, store::WorkIn::kStartsIn}, limit, builder));
  return {};
}

Result<std::map<Id128, std::vector<GpuWork::Activity>>> ReadActivity(store::Store& store,
                                                                     const TimeRange& range) {
  constexpr std::array kActivity = {Metric::kGpuSmActive, Metric::kGpuTensorActive, Metric::kGpuDramActive};
  std::vector<std::string> values;
  for (const Metric metric : kActivity)
    values.push_back(fmt::format("max(value) FILTER (metric = '{}')", model::InfoOf(metric).name));
  const SqlPart sql{
      fmt::format("SELECT device, {} FROM metrics WHERE process IS NULL AND device IS NOT NULL AND metric IN "
                  "({}) AND isfinite(value) AND time_ns >= ? AND time_ns < ? GROUP BY device, time_ns "
                  "HAVING count(DISTINCT metric) = {} "
                  "QUALIFY row_number() OVER (PARTITION BY device ORDER BY hash(time_ns)) <= ?",
                  fmt::join(values, ", "), store::ListNames(kActivity), kActivity.size()),
      {range.from_ns, range.to_ns, kMaxReadings}};
  constexpr double kPercent = 0.01;
  std::map<Id128, std::vector<GpuWork::Activity>> readings;
  TRY(store::ForEachRow(store, sql, [&](const Rows& row) {
    readings[row.Id(0)].push_back({.sm = kPercent * row.Float64(1),
                                   .tensor = kPercent * row.Float64(2),
                                   .dram = kPercent * row.Float64(3)});
  }));
  return readings;
}

}  // namespace gpusonde::fleet
