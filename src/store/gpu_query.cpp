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

// Rows of a device's pieces of time, busy or observed, cut to the range and without overlap: of pieces by
// start, each begins no sooner than the latest end of those before it.
constexpr std::string_view kPiecesSql = R"(
  WITH work AS (SELECT device, process, start_ns, end_ns FROM {work}),
  pieces AS (
    SELECT true AS busy, device, start_ns, end_ns FROM work
    UNION ALL
    SELECT false, device, sessions.start_ns, sessions.end_ns
    FROM {sessions} AS sessions JOIN (SELECT DISTINCT device, process FROM {nearby}) USING (process)
  ), cut AS (
    SELECT busy, device, greatest(start_ns, ?) AS start_ns, least(end_ns, ?) AS end_ns FROM pieces
  ), separate AS (
    SELECT busy, device, end_ns, greatest(start_ns, coalesce(max(end_ns) OVER (
      PARTITION BY busy, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
      start_ns)) AS start_ns FROM cut
  )
  SELECT busy, device, )";
constexpr std::string_view kPiecesEnd = " FROM separate WHERE end_ns > start_ns)";

// Time by device in units of a bucket, for each bucket.
constexpr std::string_view kBucketsSql =
    "SELECT busy, device, bucket, sum(least(until, bucket + 1) - greatest(since, bucket)) FROM ("
    "SELECT *, unnest(range(floor(since)::BIGINT, ceil(until)::BIGINT)) AS bucket FROM ({}"
    "(start_ns - ?) / ? + ? AS since, (end_ns - ?) / ? + ? AS until{}) GROUP BY busy, device, bucket";
constexpr std::string_view kSumsSql =
    "SELECT busy, device, least(sum(end_ns - start_ns), 9223372036854775807)::BIGINT FROM ({}"
    "start_ns, end_ns{} GROUP BY busy, device";

// The pieces of the selection's work in the range. Moments before 1970 hold no work, so no difference below
// overflows.
SqlPart Pieces(const model::Selection& selection, const TimeRange& range) {
  const SqlPart work = GpuWork(selection, range, WorkIn::kRunsIn);
  const SqlPart sessions = GpuSessions(selection, range);
  const SqlPart nearby = GpuWork(selection, SessionReach(range), WorkIn::kRunsIn);
  SqlPart pieces{fmt::format(kPiecesSql, fmt::arg("work", work.text), fmt::arg("sessions", sessions.text),
                             fmt::arg("nearby", nearby.text)),
                 work.parameters};
  pieces += {"", sessions.parameters};
  pieces += {"", nearby.parameters};
  return pieces += {"", {range.from_ns, range.to_ns}};
}

Result<TimeRange> WorkRange(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(TimeRange range, ReadTimeRange(store, selection));
  return TimeRange{std::max<int64_t>(range.from_ns, 0), range.to_ns};
}

Status ReadPieceSums(Store& store, const model::Selection& selection, const TimeRange& range,
                     std::map<Id128, DeviceUse>& uses) {
  const SqlPart pieces = Pieces(selection, range);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query(fmt::format(kSumsSql, pieces.text, kPiecesEnd), pieces.parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    DeviceUse& use = uses[rows->Id(1)];
    (rows->Int64(0) != 0 ? use.busy_ns : use.observed_ns) = rows->Int64(2);
  }
  return {};
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
      store.Query("SELECT device, ordinal, uuid, name, simulated FROM devices ORDER BY ordinal, uuid, device"));
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
  TRY(ReadPieceSums(store, selection, range, by_id));
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
  const TimeRange range{std::max<int64_t>(whole.from_ns, 0), whole.to_ns};
  if (range.to_ns <= range.from_ns) return std::vector<DeviceStrip>();
  const auto count = static_cast<size_t>(buckets);
  const double bucket_ns =
      static_cast<double>(static_cast<uint64_t>(whole.to_ns) - static_cast<uint64_t>(whole.from_ns)) / buckets;

  SqlPart pieces = Pieces(selection, range);
  // A file may say that it begins long before 1970.
  const double skipped = static_cast<double>(static_cast<uint64_t>(range.from_ns) -
                                             static_cast<uint64_t>(whole.from_ns)) / bucket_ns;
  pieces += {"", {range.from_ns, bucket_ns, skipped, range.from_ns, bucket_ns, skipped}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query(fmt::format(kBucketsSql, pieces.text, kPiecesEnd), pieces.parameters));
  struct Times {
    std::vector<double> busy, observed;
  };
  std::map<Id128, Times> by_id;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    Times& times = by_id[rows->Id(1)];
    std::vector<double>& values = rows->Int64(0) != 0 ? times.busy : times.observed;
    values.resize(count);
    const auto bucket = static_cast<size_t>(std::max<int64_t>(rows->Int64(2), 0));
    values[std::min(bucket, count - 1)] += rows->Float64(3);
  }
  std::vector<Id128> seen;
  for (const auto& [id, times] : by_id) seen.push_back(id);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, WithStrangers(store, std::move(seen)));
  std::vector<DeviceStrip> strips;
  for (const GpuDevice& device : devices) {
    const auto found = by_id.find(device.device);
    if (found == by_id.end()) continue;
    auto& [busy, observed] = found->second;
    busy.resize(count);
    observed.resize(count);
    DeviceStrip strip{device, {whole.from_ns, whole.to_ns, std::vector<std::optional<double>>(count)}};
    for (size_t i = 0; i < count; ++i)
      if (const double seen_time = std::max(busy[i], observed[i]); seen_time > 0)
        strip.strip.values[i] = busy[i] / seen_time;
    strips.push_back(std::move(strip));
  }
  return strips;
}

}  // namespace gpusonde::store
