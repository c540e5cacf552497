// SPDX-License-Identifier: Apache-2.0
#include "store/queries/gpu_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/saturated.h"
#include "model/mig_name.h"
#include "store/each_row.h"
#include "store/queries/bucket_overlap.h"
#include "store/queries/gpu_work.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/pack_sums.h"
#include "store/rollups/windows.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// Whether there may be any work of GPUs: to sum none took 8 % of the CPU time of `record -- true`.
Result<bool> HasWork(Store& store) {
  if (const TimeRange windows = store.gpu_windows(); windows.from_ns < windows.to_ns) return true;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT 1 WHERE EXISTS (FROM raw.kernels) OR EXISTS (FROM raw.kernel_packs) OR "
                  "EXISTS (FROM raw.memcpys) OR EXISTS (FROM raw.memsets)"));
  return rows->Next();
}

// Where the selection's work may be looked up in windows of devices: those are of everybody's work.
bool IsWholeDevices(const model::Selection& selection) {
  return selection.processes.empty() && !selection.stream.has_value();
}

// A process that ran work on a device.
struct DeviceUser {
  std::vector<TimeRange> sessions;  // sorted by start
  // From its first session on, and the last time known of them; null if their rows were lost.
  std::optional<int64_t> first_ns, last_ns;
  std::optional<int64_t> exited_ns;
};

// By device and process: those that ran work within ten minutes of the range, and their sessions in it.
Result<std::map<std::pair<Id128, Id128>, DeviceUser>> ReadDeviceUsers(Store& store,
                                                                      const model::Selection& selection,
                                                                      const TimeRange& range) {
  model::Selection any_stream = selection;
  any_stream.stream.reset();
  SqlPart sql{
      "SELECT device, process, sessions.start_ns, sessions.end_ns, first_ns, last_ns, exited_ns FROM (", {}};
  sql += WorkOwners(store, any_stream, SessionReach(range));
  sql.text += ") LEFT JOIN ";
  sql += GpuSessions(selection, range);
  sql.text +=
      " AS sessions USING (process) LEFT JOIN (SELECT process, min(start_ns) AS first_ns, "
      "max(greatest(start_ns, coalesce(end_ns, 0))) AS last_ns FROM gpu_sessions WHERE start_ns > 0 "
      "GROUP BY process) USING (process) LEFT JOIN processes USING (process) ORDER BY sessions.start_ns";
  std::map<std::pair<Id128, Id128>, DeviceUser> users;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    DeviceUser& user = users[{row.Id(0), row.Id(1)}];
    if (!row.IsNull(2)) user.sessions.push_back({row.Int64(2), row.Int64(3)});
    user.first_ns = OptionalInt64(row, 4);
    user.last_ns = OptionalInt64(row, 5);
    user.exited_ns = OptionalInt64(row, 6);
  }));
  return users;
}

// When a process may have run work on its device: from its first session to its end, or if that is unknown,
// to the end of the run that saw its last session.
TimeRange LifeOf(const DeviceUser& user, std::span<const TimeRange> runs) {
  if (!user.first_ns.has_value() || !user.last_ns.has_value()) return {};
  const auto last =
      std::ranges::find_if(runs, [&](const TimeRange& run) { return run.to_ns >= *user.last_ns; });
  return {*user.first_ns, user.exited_ns.value_or(last == runs.end() ? *user.last_ns : last->to_ns)};
}

// Within a range: when the work of any process on each device would have been recorded; the part of that time
// in which the work of another process on it would not have been, as its profiling was paused; and when all
// were paused.
struct ObservedTimes {
  DeviceTimes any, partial, paused;
};

Result<ObservedTimes> ReadObservedTimes(Store& store, const model::Selection& selection,
                                        const TimeRange& range) {
  ASSIGN_OR_RETURN(const auto users, ReadDeviceUsers(store, selection, range));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, ReadRuns(store));
  ObservedTimes times;
  DeviceTimes missing;
  for (const auto& [key, user] : users) {
    const std::vector<TimeRange> profiled = UnionOf(user.sessions, range);
    const TimeRange life = LifeOf(user, runs);
    const std::vector<TimeRange> unprofiled = Subtract(UnionOf(std::span(&life, 1), range), profiled);
    std::vector<TimeRange>& any = times.any[key.first];
    any.insert(any.end(), profiled.begin(), profiled.end());
    std::vector<TimeRange>& not_seen = missing[key.first];
    not_seen.insert(not_seen.end(), unprofiled.begin(), unprofiled.end());
  }
  MergeTimes(times.any);
  MergeTimes(missing);
  for (const auto& [device, not_seen] : missing) {
    times.paused[device] = Subtract(not_seen, times.any[device]);
    if (!runs.empty()) times.paused[device] = Intersect(times.paused[device], runs);
  }
  for (auto& [device, any] : times.any) {
    if (!runs.empty()) any = Intersect(any, runs);
    times.partial[device] = Intersect(any, missing[device]);
  }
  return times;
}

// Calls on_time(device, range, busy share) for all time in the range in which a device was busy, with windows
// of these levels where there are some.
template <class OnTime>
Status ForEachBusyTime(Store& store, const model::Selection& selection, const TimeRange& range,
                       std::span<const WindowLevel> levels, OnTime&& on_time) {
  if (!IsWholeDevices(selection)) levels = {};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), levels)) {
    if (piece.level.has_value()) {
      SqlPart windows{fmt::format("SELECT device, start_ns, end_ns, {} FROM device_windows "
                                  "WHERE start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ?",
                                  SaturatedSum("busy_ns")),
                      {piece.range.from_ns, piece.range.to_ns, piece.level->length_ns}};
      if (selection.device.has_value()) windows += {" AND device = ?", {*selection.device}};
      windows.text += " GROUP BY device, start_ns, end_ns";
      TRY(ForEachRow(store, windows, [&](const Rows& row) {
        // Work that goes on past midnight is in the files of two days.
        const double share = static_cast<double>(row.Int64(3)) / static_cast<double>(piece.level->length_ns);
        on_time(row.Id(0), TimeRange{row.Int64(1), row.Int64(2)}, std::min(share, 1.0));
      }));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                     ReadSlices(Asking(store), selection, piece.range, kWorkRowsAtOnce));
    for (const TimeRange& slice : slices) {
      SqlPart work{"SELECT device, start_ns, end_ns FROM ", {}};
      work += GpuWork(selection, slice, WorkIn::kRunsIn, Packs::kNone);
      ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(work.text, work.parameters));
      DeviceTimes busy;
      TRY(AddPackedTimes(Asking(store), selection, slice, "",
                         [&](const Id128&, const Id128& device) { return &busy[device]; }));
      TRY(AddTimes(*rows, slice, busy));
      MergeTimes(busy);
      for (const auto& [device, times] : busy)
        for (const TimeRange& time : times) on_time(device, time, 1.0);
    }
  }
  return {};
}

Status ReadTimeSums(Store& store, const model::Selection& selection, const TimeRange& range,
                    std::map<Id128, DeviceUse>& uses) {
  ASSIGN_OR_RETURN(const ObservedTimes observed, ReadObservedTimes(store, selection, range));
  for (const auto& [device, times] : observed.any) uses[device].observed_ns += LengthOf(times);
  for (const auto& [device, times] : observed.partial) uses[device].partial_ns += LengthOf(times);
  for (const auto& [device, times] : observed.paused) uses[device].paused_ns += LengthOf(times);
  constexpr std::array kLevels = {kMinuteOfBusy, kSecondOfBusy, kTenthOfBusy};
  return ForEachBusyTime(
      store, selection, range, kLevels, [&](Id128 device, const TimeRange& time, double share) {
        uses[device].busy_ns += std::llround(static_cast<double>(time.to_ns - time.from_ns) * share);
      });
}

// A device's time in each bucket, in units of a bucket.
struct BucketTimes {
  std::vector<double> busy, observed, partial;
};

Result<std::map<Id128, BucketTimes>> ReadBuckets(Store& store, const model::Selection& selection,
                                                 const TimeRange& whole, size_t count) {
  const TimeRange range{std::max<int64_t>(whole.from_ns, 0), whole.to_ns};
  // Unsigned: a file may say that it begins long before 1970.
  const double bucket_ns =
      static_cast<double>(static_cast<uint64_t>(whole.to_ns) - static_cast<uint64_t>(whole.from_ns)) /
      static_cast<double>(count);
  const auto at = [&](int64_t time_ns) {
    return static_cast<double>(static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(whole.from_ns)) /
           bucket_ns;
  };
  const std::vector<double> zeros(count);
  std::map<Id128, BucketTimes> by_device;
  const auto times_of = [&](Id128 device) -> BucketTimes& {
    return by_device.try_emplace(device, zeros, zeros, zeros).first->second;
  };
  ASSIGN_OR_RETURN(const ObservedTimes observed, ReadObservedTimes(store, selection, range));
  for (const auto& [device, times] : observed.any)
    for (const TimeRange& time : times)
      AddOverlap(at(time.from_ns), at(time.to_ns), 1, times_of(device).observed);
  for (const auto& [device, times] : observed.partial)
    for (const TimeRange& time : times)
      AddOverlap(at(time.from_ns), at(time.to_ns), 1, times_of(device).partial);
  // A window as long as a bucket would smear what happened in it over two of them.
  std::vector<WindowLevel> levels;
  for (const WindowLevel& level : {kMinuteOfBusy, kSecondOfBusy, kTenthOfBusy})
    if (static_cast<double>(level.length_ns) <= bucket_ns) levels.push_back(level);
  TRY(ForEachBusyTime(store, selection, range, levels,
                      [&](Id128 device, const TimeRange& time, double share) {
                        AddOverlap(at(time.from_ns), at(time.to_ns), share, times_of(device).busy);
                      }));
  return by_device;
}

Status ReadStreamSums(Store& store, const model::Selection& selection, const TimeRange& range,
                      std::map<Id128, DeviceUse>& uses) {
  std::map<Id128, std::map<int64_t, int64_t>> streams;  // busy time
  TRY(ForEachWorkSum(store, selection, range, [&](const WorkSum& sum) {
    uses[sum.device].kernels = AddSaturated(uses[sum.device].kernels, sum.kernels);
    int64_t& busy_ns = streams[sum.device][sum.stream];
    busy_ns = AddSaturated(busy_ns, sum.busy_ns);
  }));
  for (const auto& [device, busy] : streams) {
    std::vector<StreamUse>& of_device = uses[device].streams;
    for (const auto& [stream, busy_ns] : busy) of_device.push_back({stream, busy_ns});
    std::ranges::stable_sort(of_device, std::greater(), &StreamUse::busy_ns);
  }
  return {};
}

// Whether two devices would be called the same. Devices are in the order of ReadDevices.
bool LookAlike(const GpuDevice& a, const GpuDevice& b) {
  return a.ordinal == b.ordinal && model::MigPartOf(a.name) == model::MigPartOf(b.name);
}

// Names the traces of devices that look alike.
Status NameTraces(Store& store, std::vector<GpuDevice>& devices) {
  if (std::ranges::adjacent_find(devices, LookAlike) == devices.end()) return {};
  struct Origin {
    std::string trace, rank;
  };
  std::map<Id128, Origin> origins;
  // The name of a trace's process has its rank (docs/import.md).
  TRY(ForEachRow(
      store,
      SqlPart{"SELECT device, sources.command, rank FROM devices JOIN sources USING (source) LEFT JOIN ("
              "SELECT source, any_value(rank) AS rank FROM ("
              "SELECT source, regexp_extract(name, '^(rank [0-9]+) [(]', 1) AS rank FROM processes) "
              "WHERE rank <> '' GROUP BY source HAVING count(DISTINCT rank) = 1) USING (source) "
              "WHERE kind = 'import'",
              {}},
      [&](const Rows& row) { origins[row.Id(0)] = {std::string(row.Text(1)), std::string(row.Text(2))}; }));
  for (auto first = devices.begin(); first != devices.end();) {
    const auto end = std::find_if_not(first, devices.end(),
                                      [&](const GpuDevice& next) { return LookAlike(*first, next); });
    std::set<std::string> ranks;
    for (auto device = first; device != end; ++device) ranks.insert(origins[device->device].rank);
    const bool by_rank = std::ssize(ranks) == end - first && !ranks.contains("");
    for (auto device = first; device != end && end - first > 1; ++device)
      device->trace = by_rank ? origins[device->device].rank : origins[device->device].trace;
    first = end;
  }
  return {};
}

}  // namespace

Result<std::vector<GpuDevice>> ReadDevices(Store& store) {
  const SqlPart sql{
      "SELECT device, ordinal, uuid, name, simulated, parent FROM devices "
      "ORDER BY ordinal, uuid, device",
      {}};
  std::vector<GpuDevice> devices;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    devices.push_back({row.Id(0), static_cast<int32_t>(row.Int64(1)), std::string(row.Text(2)),
                       std::string(row.Text(3)), row.Int64(4) != 0, OptionalId(row, 5)});
  }));
  TRY(NameTraces(store, devices));
  return devices;
}

Result<std::vector<GpuDevice>> ReadDevicesAnd(Store& store, std::vector<Id128> seen) {
  ASSIGN_OR_RETURN(std::vector<GpuDevice> devices, ReadDevices(store));
  std::ranges::sort(seen);
  for (const Id128 id : seen)
    if (std::ranges::find(devices, id, &GpuDevice::device) == devices.end())
      devices.push_back({.device = id, .ordinal = -1, .uuid = "", .name = ""});
  return devices;
}

Result<std::vector<DeviceUse>> ReadDeviceUse(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  std::map<Id128, DeviceUse> by_id;
  ASSIGN_OR_RETURN(const bool any_work, HasWork(store));
  if (any_work && range.from_ns < range.to_ns) {
    TRY(ReadTimeSums(store, selection, range, by_id));
    TRY(ReadStreamSums(store, selection, range, by_id));
  }
  std::vector<Id128> seen;
  for (const auto& [id, use] : by_id) seen.push_back(id);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevicesAnd(store, std::move(seen)));
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
  TRY(CheckBuckets(buckets));
  ASSIGN_OR_RETURN(const TimeRange whole, ReadTimeRange(store, selection));
  if (whole.to_ns <= std::max<int64_t>(whole.from_ns, 0)) return std::vector<DeviceStrip>();
  const auto count = static_cast<size_t>(buckets);
  ASSIGN_OR_RETURN(const auto by_device, ReadBuckets(store, selection, whole, count));
  std::vector<Id128> seen;
  for (const auto& [id, times] : by_device) seen.push_back(id);
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevicesAnd(store, std::move(seen)));
  std::vector<DeviceStrip> strips;
  for (const GpuDevice& device : devices) {
    const auto found = by_device.find(device.device);
    if (found == by_device.end()) continue;
    const BucketTimes& times = found->second;
    DeviceStrip strip{device,
                      {whole.from_ns, whole.to_ns, std::vector<std::optional<double>>(count)},
                      std::vector<double>(count),
                      times.partial};
    for (size_t i = 0; i < count; ++i)
      if (const double known = std::max(times.busy[i], times.observed[i]); known > 0) {
        strip.strip.values[i] = times.busy[i] / known;
        strip.observed[i] = known;
      }
    strips.push_back(std::move(strip));
  }
  return strips;
}

}  // namespace gpusonde::store
