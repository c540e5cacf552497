// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usage_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/metric_catalogue.h"
#include "store/queries/usage_holders.h"
#include "store/queries/usage_work.h"
#include "store/rollups/windows.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

std::string_view UtilizationName() { return model::InfoOf(model::Metric::kGpuProcessUtilization).name; }

Status ReadSampledUtilization(Store& store, GpuUsage& usage) {
  const SqlPart sql{
      fmt::format(
          "SELECT process, device, avg(value) FROM metrics WHERE metric = '{}' AND process IS NOT NULL AND "
          "device IS NOT NULL AND time_ns >= ? AND time_ns < ? GROUP BY ALL",
          UtilizationName()),
      {usage.range.from_ns, usage.range.to_ns}};
  std::map<std::pair<Id128, Id128>, double> mean;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    mean[{row.Id(0), row.Id(1)}] = std::clamp(row.Float64(2) / 100, 0.0, 1.0);
  }));
  for (DeviceHolder& holder : usage.holders)
    if (const auto found = mean.find({holder.process, holder.device}); found != mean.end())
      holder.sampled_utilization = found->second;
  return {};
}

// The readings in each hour, of the holders by their number.
Status AddReadings(Store& store, const std::map<std::pair<Id128, Id128>, size_t>& numbers,
                   GpuUsageHours& usage) {
  std::map<std::pair<int64_t, size_t>, HolderHour*> places;
  for (HolderHour& hour : usage.hours) places[{hour.start_ns, hour.holder}] = &hour;
  const SqlPart sql{fmt::format("SELECT process, device, time_ns // ?::BIGINT AS hour, sum(value), count(*) "
                                "FROM metrics WHERE metric = '{}' AND process IS NOT NULL AND device IS NOT "
                                "NULL AND time_ns >= ? AND time_ns < ? GROUP BY ALL",
                                UtilizationName()),
                    {kUsageHourNs, usage.range.from_ns, usage.range.to_ns}};
  return ForEachRow(store, sql, [&](const Rows& row) {
    const auto number = numbers.find({row.Id(0), row.Id(1)});
    if (number == numbers.end()) return;
    const auto place = places.find({row.Int64(2) * kUsageHourNs, number->second});
    if (place == places.end()) return;
    place->second->readings_sum = row.Float64(3) / 100;
    place->second->readings = row.Int64(4);
  });
}

Status ReadUsedDevices(Store& store, const HeldDevices& holders, std::vector<GpuDevice>& devices) {
  std::vector<Id128> seen;
  for (const auto& [device, of_device] : holders) seen.push_back(device);
  ASSIGN_OR_RETURN(devices, ReadDevicesAnd(store, std::move(seen)));
  return {};
}

}  // namespace

Result<GpuUsage> ReadGpuUsage(Store& store, const model::Selection& selection) {
  GpuUsage usage;
  ASSIGN_OR_RETURN(const TimeRange whole, ReadTimeRange(store, selection));
  usage.range = {BoundTime(std::max<int64_t>(whole.from_ns, 0)), BoundTime(whole.to_ns)};
  if (usage.range.from_ns >= usage.range.to_ns) return GpuUsage();
  Sightings seen;
  TRY(ReadSightings(store, 0, seen));
  ASSIGN_OR_RETURN(HeldDevices holders, ReadHolders(store, seen, usage));
  for (auto& [device, of_device] : holders) of_device.account.emplace(of_device.times, usage.range);
  TRY(AddWork(store, usage, holders));
  for (const auto& [device, of_device] : holders) {
    const std::vector<model::HolderUse> uses = of_device.account->Uses();
    for (size_t i = 0; i < uses.size(); ++i) usage.holders[of_device.rows[i]].use = uses[i];
  }
  TRY(ReadSampledUtilization(store, usage));

  TRY(ReadUsedDevices(store, holders, usage.devices));
  std::map<Id128, size_t> order;
  for (size_t i = 0; i < usage.devices.size(); ++i) order[usage.devices[i].device] = i;
  std::ranges::stable_sort(usage.holders, {},
                           [&](const DeviceHolder& holder) { return order[holder.device]; });
  return usage;
}

Result<GpuUsageHours> ReadGpuUsageHours(Store& store, int64_t from_ns, int64_t max_hours, Sightings& seen) {
  GpuUsage usage;
  ASSIGN_OR_RETURN(const TimeRange whole, ReadTimeRange(store, {.filter = {}}));
  const int64_t end_ns = BoundTime(whole.to_ns);
  const int64_t first_ns =
      std::max({BoundTime(whole.from_ns), from_ns, end_ns - max_hours * kUsageHourNs, int64_t{0}});
  usage.range = {first_ns - first_ns % kUsageHourNs, end_ns};
  GpuUsageHours hours;
  if (usage.range.from_ns >= usage.range.to_ns) return hours;
  hours.range = usage.range;
  hours.oldest_ns = std::max<int64_t>(BoundTime(whole.from_ns), 0);
  TRY(ReadSightings(store, from_ns, seen));
  ASSIGN_OR_RETURN(HeldDevices holders, ReadHolders(store, seen, usage));
  for (auto& [device, of_device] : holders)
    of_device.account.emplace(of_device.times, usage.range, kUsageHourNs);
  TRY(AddWork(store, usage, holders));
  std::map<std::pair<Id128, Id128>, size_t> numbers;  // of processes and devices
  for (const auto& [device, of_device] : holders) {
    const auto uses = of_device.account->UsesByBlock();
    for (size_t i = 0; i < uses.size(); ++i) {
      const size_t holder = of_device.rows[i];
      numbers[{usage.holders[holder].process, device}] = holder;
      for (const auto& part : uses[i])
        hours.hours.push_back(
            {.start_ns = usage.range.from_ns + static_cast<int64_t>(part.block) * kUsageHourNs,
             .holder = holder,
             .busy_ns = part.busy_ns,
             .idle_ns = part.idle_ns,
             .unobserved_ns = part.unobserved_ns,
             .held_ns = part.held_ns});
    }
  }
  std::ranges::sort(hours.hours, {},
                    [](const HolderHour& hour) { return std::pair(hour.start_ns, hour.holder); });
  std::erase_if(seen, [&numbers](const auto& entry) {
    return !numbers.contains({entry.first.second, entry.first.first});
  });
  hours.holders.assign(usage.holders.begin(), usage.holders.end());
  TRY(AddReadings(store, numbers, hours));
  TRY(ReadUsedDevices(store, holders, hours.devices));
  return hours;
}

}  // namespace gpusonde::store
