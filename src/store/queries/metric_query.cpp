// SPDX-License-Identifier: Apache-2.0
#include "store/queries/metric_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/time.h"
#include "store/queries/selection_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

using model::Metric;

// Shown, in this order.
constexpr std::array kShownMetrics = {
    Metric::kGpuUtilization, Metric::kGpuSmActive, Metric::kGpuTensorActive,    Metric::kGpuDramActive,
    Metric::kGpuMemoryUsed,  Metric::kGpuClockSm,  Metric::kGpuThrottleReasons, Metric::kGpuPower,
    Metric::kGpuTemperature, Metric::kGpuPcieRx,   Metric::kGpuPcieTx,
};

// With buckets as long as this, how long exactly each of a bucket's readings stood changes nothing that a
// person could see. Eight hours read exactly take more than half of the time that a week takes read so
// (bench/metrics_bench.cpp).
constexpr int64_t kLongBucketNs = 20 * kMetricHoldNs;

constexpr std::string_view kSlowedSql = "((TRY_CAST(value AS BIGINT) & {}) != 0)";

// The selection's readings of these metrics, as what follows FROM: time_ns, device, metric, value.
SqlPart Readings(const model::Selection& selection, const TimeRange& range, std::span<const Metric> metrics) {
  SqlPart part{
      fmt::format("(SELECT time_ns, device, metric, value FROM metrics WHERE process IS NULL AND device IS "
                  "NOT NULL AND isfinite(value) AND metric IN ({}) AND time_ns >= ? AND time_ns < ?{})",
                  ListNames(metrics), selection.device.has_value() ? " AND device = ?" : ""),
      {range.from_ns, range.to_ns}};
  if (selection.device.has_value()) part += {"", {*selection.device}};
  return part;
}

// The same with until_ns, when the next one came.
SqlPart Stretches(const model::Selection& selection, const TimeRange& range,
                  std::span<const Metric> metrics) {
  SqlPart part =
      Readings(selection, {std::max<int64_t>(range.from_ns - kMetricHoldNs, 0), range.to_ns}, metrics);
  part.text = fmt::format(
      "(SELECT *, least(lead(time_ns, 1, time_ns + {0}) OVER (PARTITION BY device, metric ORDER BY time_ns), "
      "time_ns + {0}) AS until_ns FROM {1})",
      kMetricHoldNs, part.text);
  return part;
}

// Moments before 1970 hold no readings, and those at the end of time none that stands for long.
Result<TimeRange> ReadingsRange(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  return TimeRange{std::max<int64_t>(range.from_ns, 0),
                   std::min(range.to_ns, std::numeric_limits<int64_t>::max() - 2 * kMetricHoldNs)};
}

// Rows of device, metric, bucket and mean.
SqlPart BucketMeans(const model::Selection& selection, const TimeRange& range, double bucket_ns) {
  const std::string value = fmt::format("CASE metric WHEN '{}' THEN CAST({} AS DOUBLE) ELSE value END",
                                        model::InfoOf(Metric::kGpuThrottleReasons).name,
                                        fmt::format(kSlowedSql, model::kSlowingThrottleBits));
  if (bucket_ns >= static_cast<double>(kLongBucketNs)) {
    SqlPart part{
        fmt::format(
            "SELECT device, metric, floor((time_ns - ?) / ?)::BIGINT AS bucket, avg({}) AS mean FROM ",
            value),
        {range.from_ns, bucket_ns}};
    part += Readings(selection, range, kShownMetrics);
    return part += {" GROUP BY device, metric, bucket", {}};
  }
  SqlPart part{
      fmt::format("SELECT device, metric, bucket, sum(shown * length) / sum(length) AS mean FROM ("
                  "SELECT *, least(until, bucket + 1) - greatest(since, bucket) AS length FROM ("
                  "SELECT *, unnest(range(floor(since)::BIGINT, ceil(until)::BIGINT)) AS bucket FROM ("
                  "SELECT device, metric, {} AS shown, (greatest(time_ns, ?) - ?) / ? AS since, "
                  "(least(until_ns, ?) - ?) / ? AS until FROM ",
                  value),
      {range.from_ns, range.from_ns, bucket_ns, range.to_ns, range.from_ns, bucket_ns}};
  part += Stretches(selection, range, kShownMetrics);
  return part += {" WHERE until_ns > ?))) WHERE length > 0 GROUP BY device, metric, bucket", {range.from_ns}};
}

// The greatest power limit of each device, and its memory: what its strips can't exceed.
Result<std::map<std::pair<Id128, Metric>, double>> ReadMosts(Store& store, const model::Selection& selection,
                                                             const TimeRange& range) {
  SqlPart part{"SELECT device, true AS is_power, max(value) FROM ", {}};
  part += Readings(selection, range, std::array{Metric::kGpuPowerLimit});
  part +=
      {" GROUP BY device UNION ALL "
       "SELECT device, false, memory_bytes::DOUBLE FROM devices WHERE memory_bytes IS NOT NULL",
       {}};
  std::map<std::pair<Id128, Metric>, double> mosts;
  TRY(ForEachRow(store, part, [&](const Rows& row) {
    mosts[{row.Id(0), row.Int64(1) != 0 ? Metric::kGpuPower : Metric::kGpuMemoryUsed}] = row.Float64(2);
  }));
  return mosts;
}

// Adds what `part` finds, rows of device, first and last time, code, and how many there are in all, as far as
// there is room.
Status AddMarks(Store& store, SqlPart part, DeviceMark::Kind kind, DeviceMarks& read) {
  part += {" LIMIT ?", {kMaxMarks - static_cast<int64_t>(read.marks.size()) + 1}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(part.text, part.parameters));
  for (int64_t all = 0, kept = 0;;) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (more) all = rows->Int64(4);
    if (!more || std::ssize(read.marks) == kMaxMarks) {
      read.omitted += all - kept;
      return {};
    }
    ++kept;
    read.marks.push_back({.kind = kind,
                          .device = {.device = rows->Id(0)},
                          .from_ns = rows->Int64(1),
                          .to_ns = rows->Int64(2),
                          .code = rows->Int64(3)});
  }
}

SqlPart Xids(const model::Selection& selection, const TimeRange& range) {
  SqlPart part{"SELECT device, time_ns, time_ns, value::BIGINT, count(*) OVER () FROM ", {}};
  part += Readings(selection, range, std::array{Metric::kGpuXid});
  return part += {" WHERE value BETWEEN 0 AND 1e9 ORDER BY time_ns DESC", {}};
}

// Gaps and islands: a stretch begins a new mark where the one before had other reasons or ended long ago.
SqlPart Throttling(const model::Selection& selection, const TimeRange& range, int64_t join_ns) {
  SqlPart part{fmt::format("WITH slowed AS (SELECT device, time_ns, until_ns, "
                           "TRY_CAST(value AS BIGINT) & {} AS bits FROM ",
                           model::kSlowingThrottleBits),
               {}};
  part += Stretches(selection, range, std::array{Metric::kGpuThrottleReasons});
  return part +=
         {" WHERE bits != 0 AND until_ns > ?), begun AS ("
          "SELECT *, CASE WHEN lag(bits) OVER each_device = bits AND "
          "time_ns - lag(until_ns) OVER each_device <= ? THEN 0 ELSE 1 END AS begins "
          "FROM slowed WINDOW each_device AS (PARTITION BY device ORDER BY time_ns)"
          "), numbered AS ("
          "SELECT *, sum(begins) OVER (PARTITION BY device ORDER BY time_ns) AS number FROM begun) "
          "SELECT device, greatest(min(time_ns), ?) AS first_ns, least(max(until_ns), ?) AS last_ns, bits, "
          "count(*) OVER () FROM numbered GROUP BY device, bits, number "
          "ORDER BY last_ns - first_ns DESC, first_ns",
          {range.from_ns, join_ns, range.from_ns, range.to_ns}};
}

}  // namespace

std::string ListNames(std::span<const Metric> metrics) {
  std::string names;
  for (const Metric metric : metrics)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", model::InfoOf(metric).name);
  return names;
}

Result<std::vector<MetricStrip>> ReadMetricStrips(Store& store, const model::Selection& selection,
                                                  int buckets) {
  TRY(CheckBuckets(buckets));
  ASSIGN_OR_RETURN(const TimeRange range, ReadingsRange(store, selection));
  if (range.to_ns <= range.from_ns) return std::vector<MetricStrip>();
  const auto count = static_cast<size_t>(buckets);
  const double bucket_ns = static_cast<double>(range.to_ns - range.from_ns) / buckets;
  const SqlPart means = BucketMeans(selection, range, bucket_ns);
  std::map<Id128, std::map<std::string, std::vector<std::optional<double>>>> read;
  TRY(ForEachRow(store, means, [&](const Rows& row) {
    auto& values = read[row.Id(0)][std::string(row.Text(1))];
    values.resize(count);
    const auto bucket = static_cast<size_t>(std::max<int64_t>(row.Int64(2), 0));
    values[std::min(bucket, count - 1)] = row.Float64(3);
  }));
  std::vector<Id128> seen;
  for (const auto& [device, by_metric] : read) seen.push_back(device);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevicesAnd(store, std::move(seen)));
  ASSIGN_OR_RETURN(const auto mosts, ReadMosts(store, selection, range));
  std::vector<MetricStrip> strips;
  for (const GpuDevice& device : devices) {
    for (const Metric metric : kShownMetrics) {
      const auto found = read[device.device].find(std::string(model::InfoOf(metric).name));
      if (found == read[device.device].end()) continue;
      MetricStrip strip{device, metric, {range.from_ns, range.to_ns, std::move(found->second)}, std::nullopt};
      if (model::InfoOf(metric).unit == "%") strip.most = 100;
      if (metric == Metric::kGpuThrottleReasons) strip.most = 1;
      if (const auto most = mosts.find({device.device, metric}); most != mosts.end())
        strip.most = most->second;
      strips.push_back(std::move(strip));
    }
  }
  return strips;
}

Result<std::vector<MetricMean>> ReadMetricMeans(Store& store, const model::Selection& selection,
                                                std::span<const Metric> metrics) {
  ASSIGN_OR_RETURN(const TimeRange range, ReadingsRange(store, selection));
  std::vector<MetricMean> means;
  if (range.to_ns <= range.from_ns) return means;
  SqlPart part{"SELECT device, metric, avg(value) FROM ", {}};
  part += Readings(selection, range, metrics);
  part += {" GROUP BY device, metric ORDER BY device, metric", {}};
  TRY(ForEachRow(store, part, [&](const Rows& row) {
    if (const auto metric = model::FindMetric(row.Text(1)); metric.has_value())
      means.push_back({row.Id(0), *metric, row.Float64(2)});
  }));
  return means;
}

Result<DeviceMarks> ReadDeviceMarks(Store& store, const model::Selection& selection, int buckets) {
  TRY(CheckBuckets(buckets));
  ASSIGN_OR_RETURN(const TimeRange range, ReadingsRange(store, selection));
  DeviceMarks read;
  if (range.to_ns <= range.from_ns) return read;
  TRY(AddMarks(store, Xids(selection, range), DeviceMark::Kind::kXid, read));
  const int64_t bucket_ns = (range.to_ns - range.from_ns) / buckets;
  TRY(AddMarks(store, Throttling(selection, range, bucket_ns), DeviceMark::Kind::kThrottled, read));
  std::vector<Id128> seen;
  for (const DeviceMark& mark : read.marks) seen.push_back(mark.device.device);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevicesAnd(store, std::move(seen)));
  for (DeviceMark& mark : read.marks)
    mark.device = *std::ranges::find(devices, mark.device.device, &GpuDevice::device);
  std::ranges::stable_sort(read.marks, {}, &DeviceMark::from_ns);
  return read;
}

}  // namespace gpusonde::store
