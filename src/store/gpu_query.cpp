// SPDX-License-Identifier: Apache-2.0
#include "store/gpu_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "store/gpu_sql.h"
#include "store/time_range.h"

namespace gpusonde::store {
namespace {

// Sorting 4 M rows took more than the 128 MB that a store has.
constexpr int64_t kSliceRows = 1'000'000;

// Rows of a device's busy pieces of time, cut to the range and without overlap: of pieces by start, each
// begins no sooner than the latest end of those before it.
constexpr std::string_view kBusySql = R"(
  WITH cut AS (
    SELECT device, greatest(start_ns, ?) AS start_ns, least(end_ns, ?) AS end_ns FROM {work}
  ), separate AS (
    SELECT device, end_ns, greatest(start_ns, coalesce(max(end_ns) OVER (
      PARTITION BY device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
      start_ns)) AS start_ns FROM cut
  )
  {select} FROM separate WHERE end_ns > start_ns{rest})";

// Busy time by device and bucket, in units of a bucket.
constexpr std::string_view kBucketsSelect =
    "SELECT device, bucket, sum(least(until, bucket + 1) - greatest(since, bucket)) FROM ("
    "SELECT *, unnest(range(floor(since)::BIGINT, ceil(until)::BIGINT)) AS bucket FROM ("
    "SELECT device, (start_ns - ?) / ? AS since, (end_ns - ?) / ? AS until";
constexpr std::string_view kSumsSelect = "SELECT device, sum(end_ns - start_ns)::BIGINT";

// The selection's work in the range. Moments before 1970 hold no work, so no difference of times overflows.
SqlPart BusySql(const model::Selection& selection, const TimeRange& range, std::string_view select,
                std::string_view rest) {
  const SqlPart work = GpuWork(selection, range, WorkIn::kRunsIn);
  SqlPart busy{
      fmt::format(kBusySql, fmt::arg("work", work.text), fmt::arg("select", select), fmt::arg("rest", rest)),
      {range.from_ns, range.to_ns}};
  return busy += {"", work.parameters};
}

// Times in which each device's work would have been seen, cut to the range; rising, without overlap.
using Observed = std::map<Id128, std::vector<TimeRange>>;
Result<Observed> ReadObservedOf(Store& store, const model::Selection& selection, const TimeRange& range) {
  SqlPart sessions{"SELECT DISTINCT device, sessions.start_ns, sessions.end_ns FROM ", {}};
  sessions += GpuSessions(selection, range);
  sessions.text += " AS sessions JOIN (SELECT DISTINCT device, process FROM ";
  sessions += GpuWork(selection, SessionReach(range), WorkIn::kRunsIn);
  sessions.text += ") USING (process) ORDER BY start_ns";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sessions.text, sessions.parameters));
  Observed observed;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return observed;
    std::vector<TimeRange>& times = observed[rows->Id(0)];
    TimeRange time{std::max(rows->Int64(1), range.from_ns), std::min(rows->Int64(2), range.to_ns)};
    if (!times.empty()) time.from_ns = std::max(time.from_ns, times.back().to_ns);
    if (time.from_ns < time.to_ns) times.push_back(time);
  }
}

Result<TimeRange> WorkRange(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(TimeRange range, ReadTimeRange(store, selection));
  return TimeRange{std::max<int64_t>(range.from_ns, 0), range.to_ns};
}

Status ReadTimeSums(Store& store, const model::Selection& selection, const TimeRange& range,
                    std::map<Id128, DeviceUse>& uses) {
  ASSIGN_OR_RETURN(const Observed observed, ReadObservedOf(store, selection, range));
  for (const auto& [device, times] : observed)
    for (const TimeRange& time : times) uses[device].observed_ns += time.to_ns - time.from_ns;
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlices(store, selection, range, kSliceRows));
  for (const TimeRange& slice : slices) {
    const SqlPart sums = BusySql(selection, slice, kSumsSelect, " GROUP BY device");
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sums.text, sums.parameters));
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows->Next());
      if (!more) break;
      uses[rows->Id(0)].busy_ns += rows->Int64(1);
    }
  }
  return {};
}

// A device's time in each bucket, in units of a bucket.
struct BucketTimes {
  std::vector<double> busy, observed;
};

// Adds a stretch of time, in units of a bucket since the first one's start.
void AddTime(double since, double until, std::vector<double>& buckets) {
  const auto count = static_cast<double>(buckets.size());
  since = std::clamp(since, 0.0, count);
  until = std::clamp(until, 0.0, count);
  for (auto bucket = static_cast<size_t>(since); bucket < buckets.size(); ++bucket) {
    const auto start = static_cast<double>(bucket);
    if (start >= until) break;
    buckets[bucket] += std::min(until, start + 1) - std::max(since, start);
  }
}

Result<std::map<Id128, BucketTimes>> ReadBuckets(Store& store, const model::Selection& selection,
                                                 const TimeRange& whole, size_t count) {
  const TimeRange range{std::max<int64_t>(whole.from_ns, 0), whole.to_ns};
  // Unsigned: a file may say that it begins long before 1970.
  const double bucket_ns =
      static_cast<double>(static_cast<uint64_t>(whole.to_ns) - static_cast<uint64_t>(whole.from_ns)) /
      static_cast<double>(count);
  const double skipped =
      static_cast<double>(static_cast<uint64_t>(range.from_ns) - static_cast<uint64_t>(whole.from_ns)) /
      bucket_ns;
  const auto at = [&](int64_t time_ns) {
    return static_cast<double>(time_ns - range.from_ns) / bucket_ns + skipped;
  };
  const BucketTimes nothing{std::vector<double>(count), std::vector<double>(count)};
  std::map<Id128, BucketTimes> by_device;
  ASSIGN_OR_RETURN(const Observed observed, ReadObservedOf(store, selection, range));
  for (const auto& [device, times] : observed)
    for (const TimeRange& time : times)
      AddTime(at(time.from_ns), at(time.to_ns),
              by_device.try_emplace(device, nothing).first->second.observed);
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlices(store, selection, range, kSliceRows));
  for (const TimeRange& slice : slices) {
    SqlPart buckets = BusySql(selection, slice, kBucketsSelect, ")) GROUP BY device, bucket");
    buckets += {"", {range.from_ns, bucket_ns, range.from_ns, bucket_ns}};
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(buckets.text, buckets.parameters));
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows->Next());
      if (!more) break;
      // A bucket in the database begins at the first moment of the range.
      const double since = static_cast<double>(rows->Int64(1)) + skipped;
      const auto bucket = std::min(static_cast<size_t>(std::max(since, 0.0)), count - 1);
      by_device.try_emplace(rows->Id(0), nothing).first->second.busy[bucket] += rows->Float64(2);
    }
  }
  return by_device;
}

Status ReadStreamSums(Store& store, const model::Selection& selection, const TimeRange& range,
                      std::map<Id128, DeviceUse>& uses) {
  const SqlPart work = GpuWork(selection, range, WorkIn::kStartsIn);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(fmt::format("SELECT device, stream, count(*) FILTER (NOT starts_with(name, '[mem')), "
                              "least(sum(end_ns - start_ns), 9223372036854775807)::BIGINT AS busy_ns "
                              "FROM {} GROUP BY device, stream ORDER BY busy_ns DESC, stream",
                              work.text),
                  work.parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    DeviceUse& use = uses[rows->Id(0)];
    use.kernels += rows->Int64(2);
    use.streams.push_back({rows->Int64(1), rows->Int64(3)});
  }
}

// Devices that have a row go as ReadDevices says; the others behind them, by id.
Result<std::vector<GpuDevice>> WithStrangers(Store& store, std::vector<Id128> seen) {
  ASSIGN_OR_RETURN(std::vector<GpuDevice> devices, ReadDevices(store));
  std::ranges::sort(seen);
  for (const Id128 id : seen)
    if (std::ranges::find(devices, id, &GpuDevice::device) == devices.end())
      devices.push_back({.device = id, .ordinal = -1, .uuid = "", .name = ""});
  return devices;
}

}  // namespace

Result<std::vector<GpuDevice>> ReadDevices(Store& store) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          "SELECT device, ordinal, uuid, name, simulated FROM devices ORDER BY ordinal, uuid, device"));
  std::vector<GpuDevice> devices;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return devices;
    devices.push_back({rows->Id(0), static_cast<int32_t>(rows->Int64(1)), std::string(rows->Text(2)),
                       std::string(rows->Text(3)), rows->Int64(4) != 0});
  }
}

Result<std::vector<DeviceUse>> ReadDeviceUse(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  std::map<Id128, DeviceUse> by_id;
  TRY(ReadTimeSums(store, selection, range, by_id));
  TRY(ReadStreamSums(store, selection, range, by_id));
  std::vector<Id128> seen;
  for (const auto& [id, use] : by_id) seen.push_back(id);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, WithStrangers(store, std::move(seen)));
  std::vector<DeviceUse> uses;
  for (const GpuDevice& device : devices) {
    if (selection.device.has_value() && *selection.device != device.device) continue;
    DeviceUse& use = by_id[device.device];
    use.device = device;
    use.observed_ns = std::max(use.observed_ns, use.busy_ns);
    uses.push_back(std::move(use));
  }
  return uses;
}

Result<std::vector<DeviceStrip>> ReadGpuStrips(Store& store, const model::Selection& selection, int buckets) {
  if (buckets < 1)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} buckets; at least one is needed", buckets));
  ASSIGN_OR_RETURN(const TimeRange whole, ReadTimeRange(store, selection));
  if (whole.to_ns <= std::max<int64_t>(whole.from_ns, 0)) return std::vector<DeviceStrip>();
  const auto count = static_cast<size_t>(buckets);
  ASSIGN_OR_RETURN(const auto by_device, ReadBuckets(store, selection, whole, count));
  std::vector<Id128> seen;
  for (const auto& [id, times] : by_device) seen.push_back(id);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, WithStrangers(store, std::move(seen)));
  std::vector<DeviceStrip> strips;
  for (const GpuDevice& device : devices) {
    const auto found = by_device.find(device.device);
    if (found == by_device.end()) continue;
    const BucketTimes& times = found->second;
    DeviceStrip strip{device, {whole.from_ns, whole.to_ns, std::vector<std::optional<double>>(count)}};
    for (size_t i = 0; i < count; ++i)
      if (const double known = std::max(times.busy[i], times.observed[i]); known > 0)
        strip.strip.values[i] = times.busy[i] / known;
    strips.push_back(std::move(strip));
  }
  return strips;
}

}  // namespace gpusonde::store
