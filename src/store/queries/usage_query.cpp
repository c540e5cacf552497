// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usage_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "model/metric_catalogue.h"
#include "store/queries/pod_holds.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/pack_sums.h"
#include "store/rollups/windows.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// Work of so many rows is held in memory at a time: 56 MB.
constexpr int64_t kRowsAtOnce = 1'000'000;

// Roll-ups have work by its start. Work may still run so much later (store/rollups/gpu_windows.h).
constexpr int64_t kLongestWorkNs = 600 * kNanosPerSecond;

constexpr std::array kUsageLevels = {kMinuteOfWork};
static_assert(kMinuteOfWork.length_ns == kMinuteOfBusy.length_ns);

// A device, who holds it, and its account.
struct DeviceHolders {
  std::vector<size_t> rows;  // of GpuUsage::holders
  std::vector<model::DeviceAccount::Holder> times;
  std::optional<model::DeviceAccount> account;
};
using Holders = std::map<Id128, DeviceHolders>;

std::string_view NameOf(model::Metric metric) { return model::InfoOf(metric).name; }

// Who has been seen on a device until a time, as what follows FROM: rows of device, process, first_ns and
// last_ns.
SqlPart Seen(Store& store, int64_t until_ns) {
  SqlPart seen{"(SELECT device, process, min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM (", {}};
  for (const TimePiece& piece : PiecesOf({0, until_ns}, store.gpu_windows(), kUsageLevels)) {
    // When in its minute work ran is unknown: at the begin, so that no later run seems to have seen it.
    if (piece.level.has_value()) {
      seen +=
          {"SELECT device, process, start_ns, start_ns AS end_ns FROM kernel_windows WHERE start_ns >= ? AND "
           "start_ns < ? AND end_ns - start_ns = ?",
           {piece.range.from_ns, piece.range.to_ns, piece.level->length_ns}};
    } else {
      seen.text += "SELECT device, process, start_ns, end_ns FROM ";
      seen += GpuWorkSpans({}, piece.range, WorkIn::kStartsIn);
    }
    seen.text += " UNION ALL ";
  }
  seen +=
      {fmt::format("SELECT device, process, time_ns, time_ns FROM metrics WHERE metric = '{}' AND value > 0 "
                   "AND process IS NOT NULL AND device IS NOT NULL AND time_ns >= 0 AND time_ns < ?)",
                   NameOf(model::Metric::kGpuProcessMemoryUsed)),
       {until_ns}};
  seen.text += " GROUP BY device, process)";
  return seen;
}

// When a process held a device: from when it was first seen to its end, as far as somebody watched.
std::vector<TimeRange> HeldTimes(const TimeRange& seen, std::optional<int64_t> exited_ns,
                                 std::span<const TimeRange> runs, const TimeRange& range) {
  if (runs.empty()) return UnionOf(std::span(&seen, 1), range);  // of a trace
  // Without an end, it is known to have run on only while the run that last saw it watched.
  const auto last = std::ranges::find_if(runs, [&](const TimeRange& run) { return run.to_ns >= seen.to_ns; });
  const TimeRange held{seen.from_ns, exited_ns.value_or(last == runs.end() ? seen.to_ns : last->to_ns)};
  return Intersect(UnionOf(std::span(&held, 1), range), runs);
}

// The sessions of each process.
Result<std::map<Id128, std::vector<TimeRange>>> ReadSessions(Store& store, const TimeRange& range) {
  SqlPart sessions{"SELECT process, start_ns, end_ns FROM ", {}};
  sessions += GpuSessions({}, range);
  sessions.text += " AS sessions ORDER BY start_ns";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sessions.text, sessions.parameters));
  std::map<Id128, std::vector<TimeRange>> by_process;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return by_process;
    AppendToUnion({rows->Int64(1), rows->Int64(2)}, by_process[rows->Id(0)]);
  }
}

// Fills the holders of the usage, without their use, and returns the times of each.
Result<Holders> ReadHolders(Store& store, GpuUsage& usage) {
  ASSIGN_OR_RETURN(const auto runs, ReadRunsByHost(store));
  ASSIGN_OR_RETURN(const auto sessions, ReadSessions(store, usage.range));
  SqlPart named{
      "SELECT device, seen.process, first_ns, last_ns, pid, name, processes.command, cgroup, user_id, "
      "processes.started_ns, exited_ns, host FROM ",
      {}};
  named += Seen(store, usage.range.to_ns);
  named +=
      {" AS seen LEFT JOIN processes ON processes.process = seen.process "
       "LEFT JOIN sources ON sources.source = processes.source "
       "WHERE coalesce(exited_ns > ?, true) ORDER BY pid, seen.process",
       {usage.range.from_ns}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(named.text, named.parameters));
  Holders holders;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return holders;
    // A minute of a roll-up may begin before the process.
    const TimeRange seen{BoundTime(std::max(rows->Int64(2), rows->Int64(9))), BoundTime(rows->Int64(3))};
    const auto exited_ns = rows->IsNull(10) ? std::nullopt : std::optional(BoundTime(rows->Int64(10)));
    DeviceHolder holder{.process = rows->Id(1),
                        .device = rows->Id(0),
                        .host = std::string(rows->Text(11)),
                        .without_process = {},
                        .pid = static_cast<int32_t>(rows->Int64(4)),
                        .name = std::string(rows->Text(5)),
                        .command = std::string(rows->Text(6)),
                        .cgroup = std::string(rows->Text(7)),
                        .user_id = static_cast<int32_t>(rows->Int64(8)),
                        .use = {}};
    const auto of_host = runs.find(holder.host);
    std::vector<TimeRange> held = HeldTimes(
        seen, exited_ns, of_host == runs.end() ? std::span<const TimeRange>() : of_host->second, usage.range);
    if (held.empty()) continue;
    const auto of_process = sessions.find(holder.process);
    DeviceHolders& device = holders[holder.device];
    device.rows.push_back(usage.holders.size());
    device.times.push_back(
        {std::move(held), of_process == sessions.end() ? std::vector<TimeRange>() : of_process->second});
    usage.holders.push_back(std::move(holder));
  }
}

// Adds the containers of pods that had a device allocated while no process of the pod held it. They do
// nothing, so all of their time is observed.
Status AddPods(Store& store, GpuUsage& usage, Holders& holders) {
  ASSIGN_OR_RETURN(const auto runs, ReadRunsByHost(store));
  ASSIGN_OR_RETURN(const std::vector<PodHold> holds, ReadPodHolds(store, usage.range, runs));
  if (holds.empty()) return {};
  ASSIGN_OR_RETURN(const ContainerNames names, ContainerNames::Read(store));
  for (const PodHold& hold : holds) {
    std::vector<TimeRange> by_processes;
    if (const auto known = holders.find(hold.device); known != holders.end())
      for (size_t i = 0; i < known->second.rows.size(); ++i) {
        const DeviceHolder& holder = usage.holders[known->second.rows[i]];
        if (holder.without_process.has_value() || !MayBeOf(holder.cgroup, hold.pod, names)) continue;
        const std::vector<TimeRange>& held = known->second.times[i].held;
        by_processes.insert(by_processes.end(), held.begin(), held.end());
      }
    std::ranges::sort(by_processes, {}, &TimeRange::from_ns);
    const std::vector<TimeRange> held = Subtract(hold.held, UnionOf(std::move(by_processes)));
    if (held.empty()) continue;
    DeviceHolders& device = holders[hold.device];
    device.rows.push_back(usage.holders.size());
    device.times.push_back({held, held});
    usage.holders.push_back({.process = hold.id,
                             .device = hold.device,
                             .host = hold.host,
                             .without_process = hold.pod,
                             .name = {},
                             .command = {},
                             .cgroup = {},
                             .use = {}});
  }
  return {};
}

// Which process alone used a device in each minute of roll-ups.
class SoleUsers {
 public:
  // Reads a piece of roll-ups; pieces come in the order of time.
  Status Read(Store& store, const TimeRange& range) {
    const Parameter parameters[] = {range.from_ns - kLongestWorkNs, range.to_ns, kMinuteOfWork.length_ns};
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Rows> rows,
        store.Query("SELECT DISTINCT device, start_ns, process FROM kernel_windows WHERE start_ns "
                    ">= ? AND start_ns < ? AND end_ns - start_ns = ?",
                    parameters));
    while (true) {
      ASSIGN_OR_RETURN(const bool more, rows->Next());
      if (!more) return {};
      by_device_[rows->Id(0)][rows->Int64(1)].push_back(rows->Id(2));
    }
  }

  // Null if there are several, or none.
  std::optional<Id128> Of(Id128 device, int64_t minute_ns) const {
    const auto minutes = by_device_.find(device);
    if (minutes == by_device_.end()) return std::nullopt;
    std::optional<Id128> sole;
    for (auto at = minutes->second.lower_bound(minute_ns - kLongestWorkNs);
         at != minutes->second.end() && at->first <= minute_ns; ++at)
      for (const Id128 process : at->second) {
        if (sole.has_value() && *sole != process) return std::nullopt;
        sole = process;
      }
    return sole;
  }

 private:
  std::map<Id128, std::map<int64_t, std::vector<Id128>>> by_device_;
};

// What roll-ups say of a minute of a device.
struct BusyMinute {
  model::DeviceAccount* account = nullptr;
  size_t holder = 0;
  TimeRange minute;
  int64_t busy_ns = 0;
};

// Adds the roll-ups of a range to the accounts. Returns the minutes, sorted, that don't tell of every device
// whose work it was: nothing of these is added.
Result<std::vector<TimeRange>> AddRollups(Store& store, const TimeRange& range, const GpuUsage& usage,
                                          Holders& holders) {
  SoleUsers sole;
  TRY(sole.Read(store, range));
  const Parameter parameters[] = {range.from_ns, range.to_ns, kMinuteOfBusy.length_ns};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT device, start_ns, end_ns, sum(busy_ns)::BIGINT FROM device_windows WHERE "
                  "start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ? "
                  "GROUP BY device, start_ns, end_ns ORDER BY start_ns",
                  parameters));
  std::vector<TimeRange> in_rows;
  std::vector<BusyMinute> minutes;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    const auto device = holders.find(rows->Id(0));
    if (device == holders.end()) continue;
    const TimeRange minute{rows->Int64(1), rows->Int64(2)};
    const std::optional<Id128> user = sole.Of(device->first, minute.from_ns);
    const auto row =
        std::ranges::find_if(device->second.rows, [&](size_t i) { return usage.holders[i].process == user; });
    if (row == device->second.rows.end() || !device->second.account->IsEven(minute))
      AppendToUnion(minute, in_rows);
    else
      minutes.push_back({&*device->second.account, static_cast<size_t>(row - device->second.rows.begin()),
                         minute, rows->Int64(3)});
  }
  for (const BusyMinute& busy : minutes) {
    const auto at = std::ranges::partition_point(
        in_rows, [&](const TimeRange& times) { return times.to_ns <= busy.minute.from_ns; });
    if (at == in_rows.end() || at->from_ns >= busy.minute.to_ns)
      busy.account->AddBusySum(busy.holder, busy.minute, busy.busy_ns);
  }
  return in_rows;
}

// Adds the work of a slice of time, which is small enough to be held in memory, row by row.
Status AddRows(Store& store, const TimeRange& slice, const GpuUsage& usage, Holders& holders) {
  std::map<Id128, std::vector<std::vector<TimeRange>>> busy;  // device to times of each holder
  std::map<Id128, std::vector<std::pair<Id128, size_t>>>
      on;  // process to devices and its place among holders
  for (const auto& [device, of_device] : holders) {
    busy[device].resize(of_device.rows.size());
    for (size_t i = 0; i < of_device.rows.size(); ++i)
      if (!usage.holders[of_device.rows[i]].without_process.has_value() &&
          !UnionOf(of_device.times[i].held, slice).empty())
        on[usage.holders[of_device.rows[i]].process].emplace_back(device, i);
  }
  for (const auto& [process, places] : on) {
    const model::Selection selection{.processes = {process}, .filter = {}};
    DeviceTimes times;
    TRY(AddPackedTimes(Asking(store), selection, slice, "", times));
    SqlPart work{"SELECT device, start_ns, end_ns FROM ", {}};
    work += GpuWork(selection, slice, WorkIn::kRunsIn, Packs::kNone);
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(work.text, work.parameters));
    TRY(AddTimes(*rows, slice, times));
    MergeTimes(times);
    for (const auto& [device, place] : places) busy[device][place] = std::move(times[device]);
  }
  for (auto& [device, of_device] : holders) of_device.account->AddBusy(busy[device]);
  return {};
}

Status AddWork(Store& store, const GpuUsage& usage, Holders& holders) {
  std::vector<TimeRange> observed;
  for (const auto& [device, of_device] : holders) {
    const std::vector<TimeRange> times = of_device.account->Observed();
    observed.insert(observed.end(), times.begin(), times.end());
  }
  std::ranges::sort(observed, {}, &TimeRange::from_ns);
  observed = UnionOf(std::move(observed));

  for (const TimePiece& piece : PiecesOf(usage.range, store.gpu_windows(), kUsageLevels)) {
    std::vector<TimeRange> in_rows{piece.range};
    if (piece.level.has_value()) {
      ASSIGN_OR_RETURN(in_rows, AddRollups(store, piece.range, usage, holders));
    }
    for (const TimeRange& range : in_rows) {
      if (UnionOf(observed, range).empty()) continue;
      ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                       ReadSlices(Asking(store), {}, range, kRowsAtOnce));
      for (const TimeRange& slice : slices) TRY(AddRows(store, slice, usage, holders));
    }
  }
  return {};
}

Status ReadSampledUtilization(Store& store, GpuUsage& usage) {
  const Parameter parameters[] = {usage.range.from_ns, usage.range.to_ns};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          fmt::format("SELECT process, device, avg(value) FROM metrics WHERE metric = '{}' AND process IS "
                      "NOT NULL AND device IS NOT NULL AND time_ns >= ? AND time_ns < ? GROUP BY ALL",
                      NameOf(model::Metric::kGpuProcessUtilization)),
          parameters));
  std::map<std::pair<Id128, Id128>, double> mean;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    mean[{rows->Id(0), rows->Id(1)}] = std::clamp(rows->Float64(2) / 100, 0.0, 1.0);
  }
  for (DeviceHolder& holder : usage.holders)
    if (const auto found = mean.find({holder.process, holder.device}); found != mean.end())
      holder.sampled_utilization = found->second;
  return {};
}

}  // namespace

Result<GpuUsage> ReadGpuUsage(Store& store, const model::Selection& selection) {
  GpuUsage usage;
  ASSIGN_OR_RETURN(const TimeRange whole, ReadTimeRange(store, selection));
  usage.range = {BoundTime(std::max<int64_t>(whole.from_ns, 0)), BoundTime(whole.to_ns)};
  if (usage.range.from_ns >= usage.range.to_ns) return GpuUsage();
  ASSIGN_OR_RETURN(Holders holders, ReadHolders(store, usage));
  TRY(AddPods(store, usage, holders));
  for (auto& [device, of_device] : holders) of_device.account.emplace(of_device.times, usage.range);
  TRY(AddWork(store, usage, holders));
  for (const auto& [device, of_device] : holders) {
    const std::vector<model::HolderUse> uses = of_device.account->Uses();
    for (size_t i = 0; i < uses.size(); ++i) usage.holders[of_device.rows[i]].use = uses[i];
  }
  TRY(ReadSampledUtilization(store, usage));

  std::vector<Id128> seen;
  for (const auto& [device, of_device] : holders) seen.push_back(device);
  ASSIGN_OR_RETURN(usage.devices, ReadDevicesAnd(store, std::move(seen)));
  std::map<Id128, size_t> order;
  for (size_t i = 0; i < usage.devices.size(); ++i) order[usage.devices[i].device] = i;
  std::ranges::stable_sort(usage.holders, {},
                           [&](const DeviceHolder& holder) { return order[holder.device]; });
  return usage;
}

}  // namespace gpusonde::store
