// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/observe.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "fleet/observe/observation_builder.h"
#include "fleet/observe/read_work.h"
#include "store/queries/gpu_query.h"
#include "store/sql/time_range.h"

namespace gpusonde::fleet {
namespace {

// A window may have more operations than were counted on, as those of a second are not spread evenly.
constexpr int64_t kUnevenness = 4;

TimeRange RangeOf(const model::Selection& selection) {
  return {std::max<int64_t>(selection.from_ns, 0), selection.to_ns};
}

Result<int64_t> ReadObservedNs(store::Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, store::ReadTimeRange(store, selection));
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, store::ReadRuns(store));
  if (runs.empty()) return LengthOf(range);
  return LengthOf(UnionOf(runs, range));
}

Status ReadWork(store::Store& store, Id128 device, const TimeRange& range, std::span<const TimeRange> windows,
                const SampleSize& size, ObservationBuilder& builder) {
  const int64_t in_window = windows.size() == 1 ? size.operations : size.operations / size.windows;
  return ReadWindows(store, device, range, windows, kUnevenness * in_window, builder);
}

}  // namespace

Result<Observations> Observe(store::Store& store, const model::Selection& selection, const SampleSize& size) {
  const TimeRange range = RangeOf(selection);
  ASSIGN_OR_RETURN(const auto counts, CountWork(store, range));
  std::vector<Id128> seen;
  for (const auto& [device, count] : counts) seen.push_back(device);
  ASSIGN_OR_RETURN(const std::vector<store::GpuDevice> devices,
                   store::ReadDevicesAnd(store, std::move(seen)));
  std::set<Id128> divided;
  for (const store::GpuDevice& device : devices)
    if (device.parent.has_value()) divided.insert(*device.parent);
  ASSIGN_OR_RETURN(const auto windows, ChooseWindows(store, counts, range, size));
  ASSIGN_OR_RETURN(const auto activity, ReadActivity(store, range));
  Observations observations;
  ASSIGN_OR_RETURN(observations.observed_ns, ReadObservedNs(store, selection));
  for (const store::GpuDevice& device : devices) {
    if (!counts.contains(device.device) && divided.contains(device.device)) continue;
    ObservationBuilder builder;
    if (const auto of_device = windows.find(device.device); of_device != windows.end())
      TRY(ReadWork(store, device.device, range, of_device->second, size, builder));
    if (const auto readings = activity.find(device.device); readings != activity.end())
      for (const GpuWork::Activity& reading : readings->second) builder.AddActivity(reading);
    observations.gpus.push_back(
        builder.Build(device.uuid.empty() ? device.device.ToHex() : device.uuid, device.name));
  }
  return observations;
}

Result<Fingerprint> FingerprintOf(store::Store& store, const model::Selection& selection,
                                  const SampleSize& size) {
  const TimeRange range = RangeOf(selection);
  ASSIGN_OR_RETURN(const auto counts, CountWork(store, range));
  ObservationBuilder builder;
  // Of each GPU as large a share as of the others.
  SampleSize each = size;
  each.operations = std::max(size.operations / std::max<int64_t>(std::ssize(counts), 1), size.windows);
  ASSIGN_OR_RETURN(const auto windows, ChooseWindows(store, counts, range, each));
  for (const auto& [device, of_device] : windows)
    TRY(ReadWork(store, device, range, of_device, each, builder));
  return builder.Build("", "").fingerprint;
}

}  // namespace gpusonde::fleet
