// SPDX-License-Identifier: Apache-2.0
#include "store/queries/gpu_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/saturated.h"
#include "base/time.h"
#include "model/cgroup_owner.h"
#include "model/metric_catalogue.h"
#include "store/queries/container_names.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/pack_sums.h"
#include "store/rollups/windows.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// They are held in memory, by the database and by us: 56 MB.
constexpr int64_t kSliceRows = 1'000'000;

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

// A statement with rows of device and process: who ran work in the range, which isn't empty.
SqlPart WorkOwners(Store& store, const model::Selection& selection, const TimeRange& range) {
  SqlPart owners;
  std::string_view separator;
  constexpr std::array kLevels = {kHourOfWork, kMinuteOfWork};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kLevels)) {
    owners.text +=
        fmt::format("{}SELECT DISTINCT device, process FROM ", std::exchange(separator, " UNION "));
    if (piece.level.has_value())
      owners += SumsOfWindows(selection, piece.range, piece.level->length_ns).InBrackets();
    else
      owners += GpuWorkSpans(selection, piece.range, WorkIn::kRunsIn);
  }
  return owners;
}

// Times in which each device's work would have been seen, cut to the range.
Result<DeviceTimes> ReadObservedTimes(Store& store, const model::Selection& selection,
                                      const TimeRange& range) {
  model::Selection any_stream = selection;
  any_stream.stream.reset();
  SqlPart sessions{"SELECT DISTINCT device, sessions.start_ns, sessions.end_ns FROM ", {}};
  sessions += GpuSessions(selection, range);
  sessions.text += " AS sessions JOIN (";
  sessions += WorkOwners(store, any_stream, SessionReach(range));
  sessions.text += ") USING (process)";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sessions.text, sessions.parameters));
  ASSIGN_OR_RETURN(DeviceTimes observed, ReadBusyTimes(*rows, range));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, ReadRuns(store));
  if (!runs.empty())
    for (auto& [device, times] : observed) times = Intersect(times, runs);
  return observed;
}

// Calls on_time(device, range, busy share) for all time in the range in which a device was busy, with windows
// of these levels where there are some.
template <class OnTime>
Status ForEachBusyTime(Store& store, const model::Selection& selection, const TimeRange& range,
                       std::span<const WindowLevel> levels, OnTime&& on_time) {
  if (!IsWholeDevices(selection)) levels = {};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), levels)) {
    if (piece.level.has_value()) {
      SqlPart windows{
          "SELECT device, start_ns, end_ns, sum(busy_ns)::BIGINT FROM device_windows "
          "WHERE start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ?",
          {piece.range.from_ns, piece.range.to_ns, piece.level->length_ns}};
      if (selection.device.has_value()) windows += {" AND device = ?", {*selection.device}};
      windows.text += " GROUP BY device, start_ns, end_ns";
      ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(windows.text, windows.parameters));
      while (true) {
        ASSIGN_OR_RETURN(const bool more, rows->Next());
        if (!more) break;
        // Work that goes on past midnight is in the files of two days.
        const double share =
            static_cast<double>(rows->Int64(3)) / static_cast<double>(piece.level->length_ns);
        on_time(rows->Id(0), TimeRange{rows->Int64(1), rows->Int64(2)}, std::min(share, 1.0));
      }
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                     ReadSlices(Asking(store), selection, piece.range, kSliceRows));
    for (const TimeRange& slice : slices) {
      SqlPart work{"SELECT device, start_ns, end_ns FROM ", {}};
      work += GpuWork(selection, slice, WorkIn::kRunsIn, Packs::kNone);
      ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(work.text, work.parameters));
      DeviceTimes busy;
      TRY(AddPackedTimes(Asking(store), selection, slice, "", busy));
      TRY(AddTimes(*rows, slice, busy));
      MergeTimes(busy);
      for (const auto& [device, times] : busy)
        for (const TimeRange& time : times) on_time(device, time, 1.0);
    }
  }
  return {};
}

Result<TimeRange> WorkRange(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(TimeRange range, ReadTimeRange(store, selection));
  return TimeRange{std::max<int64_t>(range.from_ns, 0), range.to_ns};
}

Status ReadTimeSums(Store& store, const model::Selection& selection, const TimeRange& range,
                    std::map<Id128, DeviceUse>& uses) {
  ASSIGN_OR_RETURN(const DeviceTimes observed, ReadObservedTimes(store, selection, range));
  for (const auto& [device, times] : observed)
    for (const TimeRange& time : times) uses[device].observed_ns += time.to_ns - time.from_ns;
  constexpr std::array kLevels = {kMinuteOfBusy, kSecondOfBusy, kTenthOfBusy};
  return ForEachBusyTime(
      store, selection, range, kLevels, [&](Id128 device, const TimeRange& time, double share) {
        uses[device].busy_ns += std::llround(static_cast<double>(time.to_ns - time.from_ns) * share);
      });
}

// A device's time in each bucket, in units of a bucket.
struct BucketTimes {
  std::vector<double> busy, observed;
};

// Adds a share of a stretch of time, which is in units of a bucket since the first one's start.
void AddTime(double since, double until, double share, std::vector<double>& buckets) {
  const auto count = static_cast<double>(buckets.size());
  since = std::clamp(since, 0.0, count);
  until = std::clamp(until, 0.0, count);
  for (auto bucket = static_cast<size_t>(since); bucket < buckets.size(); ++bucket) {
    const auto start = static_cast<double>(bucket);
    if (start >= until) break;
    buckets[bucket] += share * (std::min(until, start + 1) - std::max(since, start));
  }
}

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
  const BucketTimes nothing{std::vector<double>(count), std::vector<double>(count)};
  std::map<Id128, BucketTimes> by_device;
  ASSIGN_OR_RETURN(const DeviceTimes observed, ReadObservedTimes(store, selection, range));
  for (const auto& [device, times] : observed)
    for (const TimeRange& time : times)
      AddTime(at(time.from_ns), at(time.to_ns), 1,
              by_device.try_emplace(device, nothing).first->second.observed);
  // A window as long as a bucket would smear what happened in it over two of them.
  std::vector<WindowLevel> levels;
  for (const WindowLevel& level : {kMinuteOfBusy, kSecondOfBusy, kTenthOfBusy})
    if (static_cast<double>(level.length_ns) <= bucket_ns) levels.push_back(level);
  TRY(ForEachBusyTime(store, selection, range, levels,
                      [&](Id128 device, const TimeRange& time, double share) {
                        AddTime(at(time.from_ns), at(time.to_ns), share,
                                by_device.try_emplace(device, nothing).first->second.busy);
                      }));
  return by_device;
}

Status ReadStreamSums(Store& store, const model::Selection& selection, const TimeRange& range,
                      std::map<Id128, DeviceUse>& uses) {
  SqlPart sums{
      "SELECT device, stream, sum(count) FILTER (NOT starts_with(name, '[mem'))::BIGINT AS kernels, "
      "least(sum(duration_ns), 9223372036854775807)::BIGINT AS busy_ns FROM (",
      {}};
  std::string_view separator;
  std::map<Id128, std::map<int64_t, int64_t>> streams;  // busy time
  constexpr std::array kLevels = {kHourOfWork, kMinuteOfWork};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kLevels)) {
    sums.text += fmt::format("{}SELECT device, stream, name, ", std::exchange(separator, " UNION ALL "));
    if (piece.level.has_value()) {
      sums.text += "count, duration_ns FROM ";
      sums += SumsOfWindows(selection, piece.range, piece.level->length_ns).InBrackets();
      sums.text += " WHERE part <> 'sampled'";
    } else {
      sums.text += "count(*) AS count, sum(end_ns - start_ns) AS duration_ns FROM ";
      sums += GpuWork(selection, piece.range, WorkIn::kStartsIn, Packs::kGraphs);
      sums.text += " GROUP BY device, stream, name";
      ASSIGN_OR_RETURN(const std::vector<model::KernelWindow> packed,
                       SumPacks(Asking(store), selection, piece.range, {}));
      for (const model::KernelWindow& row : packed) {
        uses[row.device].kernels = AddSaturated(uses[row.device].kernels, row.count);
        int64_t& busy_ns = streams[row.device][row.stream.value_or(0)];
        busy_ns = AddSaturated(busy_ns, row.duration_ns);
      }
    }
  }
  if (separator.empty()) return {};
  sums.text += ") GROUP BY device, stream";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sums.text, sums.parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    uses[rows->Id(0)].kernels = AddSaturated(uses[rows->Id(0)].kernels, rows->Int64(2));
    int64_t& busy_ns = streams[rows->Id(0)][rows->Int64(1)];
    busy_ns = AddSaturated(busy_ns, rows->Int64(3));
  }
  for (const auto& [device, busy] : streams) {
    std::vector<StreamUse>& of_device = uses[device].streams;
    for (const auto& [stream, busy_ns] : busy) of_device.push_back({stream, busy_ns});
    std::ranges::stable_sort(of_device, std::greater(), &StreamUse::busy_ns);
  }
  return {};
}

// Readings of the device memory that processes hold, as what follows FROM: process, device, time_ns and
// value.
SqlPart ProcessMemory(const TimeRange& range) {
  return {
      fmt::format("(SELECT process, device, time_ns, value FROM metrics WHERE metric = '{}' AND process IS "
                  "NOT NULL AND device IS NOT NULL AND time_ns >= ? AND time_ns < ?)",
                  model::InfoOf(model::Metric::kGpuProcessMemoryUsed).name),
      {range.from_ns, range.to_ns}};
}

Status ReadProcessMemory(Store& store, const TimeRange& range, std::map<Id128, GpuUser>& users) {
  SqlPart memory{"SELECT process, device, arg_max(TRY_CAST(value AS BIGINT), time_ns) AS bytes FROM ", {}};
  memory += ProcessMemory(range);
  memory.text += " GROUP BY process, device";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(memory.text, memory.parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    const auto user = users.find(rows->Id(0));
    if (user == users.end() || rows->IsNull(2)) continue;
    std::vector<DeviceShare>& shares = user->second.devices;
    const auto at = std::ranges::lower_bound(shares, rows->Id(1), {}, &DeviceShare::device);
    DeviceShare& share = at != shares.end() && at->device == rows->Id(1)
                             ? *at
                             : *shares.insert(at, DeviceShare{.device = rows->Id(1)});
    share.memory_bytes = std::max<int64_t>(rows->Int64(2), 0);
  }
}

Status ReadListening(Store& store, const TimeRange& range, std::map<Id128, GpuUser>& users) {
  using model::Metric;
  // A process reports after each window, and there is one a minute unless listening costs very much.
  constexpr int64_t kLastsNs = 150 * kNanosPerSecond;
  std::map<std::string, Metric, std::less<>> names;
  SqlPart values{"SELECT process, metric, arg_max(value, time_ns) FROM metrics WHERE metric IN (", {}};
  for (const Metric metric : {Metric::kListeningBudget, Metric::kListeningSpent, Metric::kListeningCost,
                              Metric::kListeningCostLow, Metric::kListeningCostHigh}) {
    const std::string_view name = model::InfoOf(metric).name;
    values.text += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
    names.emplace(name, metric);
  }
  values += {") AND process IS NOT NULL AND time_ns >= ? AND time_ns < ? GROUP BY process, metric",
             {range.to_ns - kLastsNs, range.to_ns}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(values.text, values.parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    const auto user = users.find(rows->Id(0));
    const auto metric = names.find(rows->Text(1));
    if (user == users.end() || metric == names.end()) continue;
    if (!user->second.listening.has_value()) user->second.listening.emplace();
    ListeningUse& use = *user->second.listening;
    const double value = rows->Float64(2);
    switch (metric->second) {
      case Metric::kListeningBudget:
        use.budget = value;
        break;
      case Metric::kListeningSpent:
        use.spent = value;
        break;
      case Metric::kListeningCost:
        use.cost = value;
        break;
      case Metric::kListeningCostLow:
        use.cost_low = value;
        break;
      default:
        use.cost_high = value;
    }
  }
}

// How long the process was listened to.
Result<int64_t> ReadSessionTime(Store& store, const model::Selection& process, const TimeRange& range,
                                const std::vector<TimeRange>& runs) {
  SqlPart sessions{"SELECT start_ns, end_ns FROM ", {}};
  sessions += GpuSessions(process, range);
  sessions.text += " AS sessions ORDER BY start_ns";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sessions.text, sessions.parameters));
  ASSIGN_OR_RETURN(std::vector<TimeRange> times, ReadUnion(*rows));
  times = Intersect(times, std::vector{range});
  if (!runs.empty()) times = Intersect(times, runs);
  int64_t observed_ns = 0;
  for (const TimeRange& time : times) observed_ns += time.to_ns - time.from_ns;
  return observed_ns;
}

}  // namespace

Result<std::vector<GpuDevice>> ReadDevices(Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT device, ordinal, uuid, name, simulated, parent FROM devices "
                               "ORDER BY ordinal, uuid, device"));
  std::vector<GpuDevice> devices;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return devices;
    devices.push_back({rows->Id(0), static_cast<int32_t>(rows->Int64(1)), std::string(rows->Text(2)),
                       std::string(rows->Text(3)), rows->Int64(4) != 0,
                       rows->IsNull(5) ? std::nullopt : std::optional(rows->Id(5))});
  }
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
  if (any_work) {
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

Result<std::vector<GpuUser>> ReadGpuUsers(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  if (range.to_ns <= range.from_ns) return std::vector<GpuUser>();
  SqlPart named{
      "SELECT process, pid, name, command, started_ns, exited_ns, cgroup FROM (SELECT process FROM (", {}};
  named += WorkOwners(store, selection, range);
  named.text += ") UNION SELECT process FROM ";
  named += ProcessMemory(range);
  named.text += ") LEFT JOIN processes USING (process)";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(named.text, named.parameters));
  ASSIGN_OR_RETURN(const ContainerNames containers, ContainerNames::Read(store));
  std::map<Id128, GpuUser> users;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    users[rows->Id(0)] = {.process = rows->Id(0),
                          .pid = static_cast<int32_t>(rows->Int64(1)),
                          .name = std::string(rows->Text(2)),
                          .command = std::string(rows->Text(3)),
                          .container = containers.ContainerOf(model::OwnerOfCgroup(rows->Text(6))),
                          .started_ns = rows->Int64(4),
                          .exited_ns = rows->IsNull(5) ? std::nullopt : std::optional(rows->Int64(5)),
                          .devices = {}};
  }
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, ReadRuns(store));
  for (auto& [process, user] : users) {
    model::Selection own = selection;
    own.processes = {process};
    std::map<Id128, DeviceUse> uses;
    TRY(ForEachBusyTime(store, own, range, {}, [&](Id128 device, const TimeRange& time, double) {
      uses[device].busy_ns += time.to_ns - time.from_ns;
    }));
    TRY(ReadStreamSums(store, own, range, uses));
    ASSIGN_OR_RETURN(user.observed_ns, ReadSessionTime(store, own, range, runs));
    for (const auto& [device, use] : uses) {
      user.devices.push_back({.device = device, .kernels = use.kernels, .busy_ns = use.busy_ns});
      user.observed_ns = std::max(user.observed_ns, use.busy_ns);
    }
  }
  TRY(ReadProcessMemory(store, range, users));
  TRY(ReadListening(store, range, users));
  std::vector<GpuUser> sorted;
  for (auto& [process, user] : users) sorted.push_back(std::move(user));
  std::ranges::stable_sort(sorted, {}, &GpuUser::pid);
  return sorted;
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
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevicesAnd(store, std::move(seen)));
  std::vector<DeviceStrip> strips;
  for (const GpuDevice& device : devices) {
    const auto found = by_device.find(device.device);
    if (found == by_device.end()) continue;
    const BucketTimes& times = found->second;
    DeviceStrip strip{device,
                      {whole.from_ns, whole.to_ns, std::vector<std::optional<double>>(count)},
                      std::vector<double>(count)};
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
