// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usage_holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/metric_catalogue.h"
#include "store/queries/pod_holds.h"
#include "store/queries/usage_work.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// Which processes were seen on which devices from a time on, as what follows FROM: rows of device, process,
// first_ns and last_ns.
SqlPart SeenSince(Store& store, int64_t from_ns) {
  const TimeRange range{from_ns, BoundTime(std::numeric_limits<int64_t>::max())};
  SqlPart seen{"(SELECT device, process, min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM (", {}};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kUsageLevels)) {
    // A roll-up doesn't say when in its minute the work ran. It is taken to have run when the minute began:
    // later, a run of gpusonde that began in that minute would seem to have seen it.
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
                   "AND process IS NOT NULL AND device IS NOT NULL AND time_ns >= ? AND time_ns < ?)",
                   model::InfoOf(model::Metric::kGpuProcessMemoryUsed).name),
       {range.from_ns, range.to_ns}};
  seen.text += " GROUP BY device, process)";
  return seen;
}

// When a process held a device: from when it was first seen to its end, where a run of gpusonde observed it.
std::vector<TimeRange> HeldTimes(const TimeRange& seen, std::optional<int64_t> exited_ns,
                                 std::span<const TimeRange> runs, const TimeRange& range) {
  if (runs.empty()) return UnionOf(std::span(&seen, 1), range);  // of a trace
  // If its end is unknown, it is known to have run only until the end of the run that last saw it.
  const auto last = std::ranges::find_if(runs, [&](const TimeRange& run) { return run.to_ns >= seen.to_ns; });
  const TimeRange held{seen.from_ns, exited_ns.value_or(last == runs.end() ? seen.to_ns : last->to_ns)};
  return Intersect(UnionOf(std::span(&held, 1), range), runs);
}

// The sessions of each process.
Result<std::map<Id128, std::vector<TimeRange>>> ReadSessions(Store& store, const TimeRange& range) {
  SqlPart sessions{"SELECT process, start_ns, end_ns FROM ", {}};
  sessions += GpuSessions({}, range);
  sessions.text += " AS sessions ORDER BY start_ns";
  std::map<Id128, std::vector<TimeRange>> by_process;
  TRY(ForEachRow(store, sessions, [&](const Rows& row) {
    AppendToUnion({row.Int64(1), row.Int64(2)}, by_process[row.Id(0)]);
  }));
  return by_process;
}

// What the store knows of a process.
struct KnownProcess {
  HolderFacts facts;  // without the device
  int64_t started_ns = 0;
  std::optional<int64_t> exited_ns;
};

Result<std::map<Id128, KnownProcess>> ReadKnownProcesses(Store& store, const Sightings& seen) {
  std::vector<Id128> ids;
  for (const auto& [key, time] : seen) ids.push_back(key.second);
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  const SqlPart sql{
      "SELECT process, pid, name, processes.command, cgroup, user_id, processes.started_ns, "
      "exited_ns, host FROM processes LEFT JOIN sources ON sources.source = processes.source "
      "WHERE process IN (SELECT unnest(?::UUID[]))",
      {std::move(ids)}};
  std::map<Id128, KnownProcess> known;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    KnownProcess& process = known[row.Id(0)];
    process.facts = {.process = row.Id(0),
                     .host = std::string(row.Text(8)),
                     .pid = static_cast<int32_t>(row.Int64(1)),
                     .name = std::string(row.Text(2)),
                     .command = std::string(row.Text(3)),
                     .cgroup = std::string(row.Text(4)),
                     .user_id = {}};
    if (!row.IsNull(5)) process.facts.user_id = static_cast<int32_t>(row.Int64(5));
    process.started_ns = row.Int64(6);
    if (!row.IsNull(7)) process.exited_ns = BoundTime(row.Int64(7));
  }));
  return known;
}

using RunsByHost = std::map<std::string, std::vector<TimeRange>>;

// The runs of each host. The last one, if its end wasn't recorded, lasts at least until the newest work or
// reading of a process's memory, which may be later than its end in ReadRunsByHost.
Result<RunsByHost> ReadRunsThatSaw(Store& store, const Sightings& seen,
                                   const std::map<Id128, KnownProcess>& known) {
  ASSIGN_OR_RETURN(RunsByHost runs, ReadRunsByHost(store));
  for (const auto& [key, time] : seen) {
    const auto process = known.find(key.second);
    if (process == known.end()) continue;
    const auto of_host = runs.find(process->second.facts.host);
    if (of_host == runs.end()) continue;
    int64_t& end_ns = of_host->second.back().to_ns;
    end_ns = std::max(end_ns, BoundTime(time.to_ns));
  }
  return runs;
}

// Adds the processes that were seen on devices.
Status AddProcesses(Store& store, const Sightings& seen, const std::map<Id128, KnownProcess>& known,
                    const RunsByHost& runs, GpuUsage& usage, HeldDevices& holders) {
  ASSIGN_OR_RETURN(const auto sessions, ReadSessions(store, usage.range));
  struct Held {
    HolderFacts holder;
    std::vector<TimeRange> times;
  };
  std::vector<Held> all;
  for (const auto& [key, time] : seen) {
    const auto found = known.find(key.second);
    const KnownProcess unknown{.facts = {.process = key.second}, .exited_ns = {}};
    const KnownProcess& process = found == known.end() ? unknown : found->second;
    // A minute of a roll-up may begin before the process.
    const TimeRange lasted{BoundTime(std::max(time.from_ns, process.started_ns)), BoundTime(time.to_ns)};
    const auto of_host = runs.find(process.facts.host);
    Held held{.holder = process.facts,
              .times = HeldTimes(lasted, process.exited_ns,
                                 of_host == runs.end() ? std::span<const TimeRange>() : of_host->second,
                                 usage.range)};
    if (held.times.empty()) continue;
    held.holder.device = key.first;
    all.push_back(std::move(held));
  }
  std::ranges::sort(all, {},
                    [](const Held& held) { return std::tuple(held.holder.pid, held.holder.process); });
  for (Held& held : all) {
    const auto of_process = sessions.find(held.holder.process);
    HeldDevice& device = holders[held.holder.device];
    device.rows.push_back(usage.holders.size());
    device.times.push_back({std::move(held.times),
                            of_process == sessions.end() ? std::vector<TimeRange>() : of_process->second});
    usage.holders.push_back({std::move(held.holder)});
  }
  return {};
}

// Adds the containers of pods that had a device allocated while no process of the pod held it. They do
// nothing, so all of their time is observed.
Status AddPods(Store& store, const RunsByHost& runs, GpuUsage& usage, HeldDevices& holders) {
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
    HeldDevice& device = holders[hold.device];
    device.rows.push_back(usage.holders.size());
    device.times.push_back({held, held});
    usage.holders.push_back(
        {{.process = hold.id, .device = hold.device, .host = hold.host, .without_process = hold.pod}});
  }
  return {};
}

}  // namespace

Status ReadSightings(Store& store, int64_t from_ns, Sightings& seen) {
  SqlPart sql{"SELECT device, process, first_ns, last_ns FROM ", {}};
  sql += SeenSince(store, from_ns);
  sql.text += " AS seen";
  return ForEachRow(store, sql, [&](const Rows& row) {
    const TimeRange time{row.Int64(2), row.Int64(3)};
    TimeRange& known = seen.try_emplace({row.Id(0), row.Id(1)}, time).first->second;
    known = {std::min(known.from_ns, time.from_ns), std::max(known.to_ns, time.to_ns)};
  });
}

Result<HeldDevices> ReadHolders(Store& store, const Sightings& seen, GpuUsage& usage) {
  ASSIGN_OR_RETURN(const auto known, ReadKnownProcesses(store, seen));
  ASSIGN_OR_RETURN(const RunsByHost runs, ReadRunsThatSaw(store, seen, known));
  HeldDevices holders;
  TRY(AddProcesses(store, seen, known, runs, usage, holders));
  TRY(AddPods(store, runs, usage, holders));
  return holders;
}

}  // namespace gpusonde::store
