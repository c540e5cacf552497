// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/saturated.h"
#include "base/time.h"
#include "model/cgroup_owner.h"
#include "model/metric_catalogue.h"
#include "store/each_row.h"
#include "store/queries/container_names.h"
#include "store/queries/gpu_query.h"
#include "store/queries/gpu_work.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

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
  return ForEachRow(store, memory, [&](const Rows& row) {
    const auto user = users.find(row.Id(0));
    if (user == users.end() || row.IsNull(2)) return;
    std::vector<DeviceShare>& shares = user->second.devices;
    const auto at = std::ranges::lower_bound(shares, row.Id(1), {}, &DeviceShare::device);
    DeviceShare& share = at != shares.end() && at->device == row.Id(1)
                             ? *at
                             : *shares.insert(at, DeviceShare{.device = row.Id(1)});
    share.memory_bytes = std::max<int64_t>(row.Int64(2), 0);
  });
}

Status ReadOverhead(Store& store, const TimeRange& range, std::map<Id128, GpuUser>& users) {
  using model::Metric;
  // A process reports after each window, and there is one a minute unless profiling costs very much.
  constexpr int64_t kLastsNs = 150 * kNanosPerSecond;
  std::map<std::string, Metric, std::less<>> names;
  SqlPart values{"SELECT process, metric, arg_max(value, time_ns) FROM metrics WHERE metric IN (", {}};
  for (const Metric metric : {Metric::kOverheadBudget, Metric::kOverheadSpent, Metric::kOverheadCost,
                              Metric::kOverheadCostLow, Metric::kOverheadCostHigh}) {
    const std::string_view name = model::InfoOf(metric).name;
    values.text += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
    names.emplace(name, metric);
  }
  values += {") AND process IS NOT NULL AND time_ns >= ? AND time_ns < ? GROUP BY process, metric",
             {range.to_ns - kLastsNs, range.to_ns}};
  return ForEachRow(store, values, [&](const Rows& row) {
    const auto user = users.find(row.Id(0));
    const auto metric = names.find(row.Text(1));
    if (user == users.end() || metric == names.end()) return;
    if (!user->second.overhead.has_value()) user->second.overhead.emplace();
    ProfilingOverhead& use = *user->second.overhead;
    const double value = row.Float64(2);
    switch (metric->second) {
      case Metric::kOverheadBudget:
        use.budget = value;
        break;
      case Metric::kOverheadSpent:
        use.spent = value;
        break;
      case Metric::kOverheadCost:
        use.cost = value;
        break;
      case Metric::kOverheadCostLow:
        use.cost_low = value;
        break;
      default:
        use.cost_high = value;
    }
  });
}

// Adds how long each process was profiled.
Status AddSessionTimes(Store& store, const model::Selection& selection, const TimeRange& range,
                       std::map<Id128, GpuUser>& users) {
  ASSIGN_OR_RETURN(const auto observed, ReadObservedTimesByProcess(store, selection, range));
  for (const auto& [process, times] : observed) {
    const auto user = users.find(process);
    if (user != users.end()) user->second.observed_ns += LengthOf(times);
  }
  return {};
}

// Adds what each process did on each device.
Status AddWork(Store& store, const model::Selection& selection, const TimeRange& range,
               std::map<Id128, GpuUser>& users) {
  std::map<Id128, std::map<Id128, DeviceShare>> shares;
  ASSIGN_OR_RETURN(const std::vector<TimeRange> slices,
                   ReadSlices(Asking(store), selection, range, kWorkRowsAtOnce));
  for (const TimeRange& slice : slices) {
    ASSIGN_OR_RETURN(const auto by_process, ReadProcessTimes(store, selection, slice));
    for (const auto& [process, by_device] : by_process)
      for (const auto& [device, times] : by_device) shares[process][device].busy_ns += LengthOf(times);
  }
  TRY(ForEachWorkSum(store, selection, range, [&](const WorkSum& sum) {
    int64_t& kernels = shares[sum.process][sum.device].kernels;
    kernels = AddSaturated(kernels, sum.kernels);
  }));
  for (auto& [process, by_device] : shares) {
    const auto user = users.find(process);
    if (user == users.end()) continue;
    for (auto& [device, share] : by_device) {
      share.device = device;
      user->second.observed_ns = std::max(user->second.observed_ns, share.busy_ns);
      user->second.devices.push_back(share);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<GpuUser>> ReadGpuUsers(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  if (range.to_ns <= range.from_ns) return std::vector<GpuUser>();
  SqlPart named{
      "SELECT process, pid, name, command, started_ns, exited_ns, cgroup FROM (SELECT process FROM (", {}};
  named += WorkOwners(store, selection, range);
  named.text += ") UNION SELECT process FROM ";
  named += ProcessMemory(range);
  named.text += ") LEFT JOIN processes USING (process)";
  ASSIGN_OR_RETURN(const ContainerNames containers, ContainerNames::Read(store));
  std::map<Id128, GpuUser> users;
  TRY(ForEachRow(store, named, [&](const Rows& row) {
    users[row.Id(0)] = {.process = row.Id(0),
                        .pid = static_cast<int32_t>(row.Int64(1)),
                        .name = std::string(row.Text(2)),
                        .command = std::string(row.Text(3)),
                        .container = containers.ContainerOf(model::OwnerOfCgroup(row.Text(6))),
                        .started_ns = row.Int64(4),
                        .exited_ns = OptionalInt64(row, 5),
                        .devices = {}};
  }));
  TRY(AddSessionTimes(store, selection, range, users));
  TRY(AddWork(store, selection, range, users));
  TRY(ReadProcessMemory(store, range, users));
  TRY(ReadOverhead(store, range, users));
  std::vector<GpuUser> sorted;
  for (auto& [process, user] : users) sorted.push_back(std::move(user));
  std::ranges::stable_sort(sorted, {}, &GpuUser::pid);
  return sorted;
}

}  // namespace gpusonde::store
