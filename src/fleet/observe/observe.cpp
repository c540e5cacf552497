// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/observe.h"

#include <algorithm>
#include <set>
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
  if (runs.empty()) return range.to_ns - range.from_ns;
  int64_t observed_ns = 0;
  for (const TimeRange& run : UnionOf(runs, range)) observed_ns += run.to_ns - run.from_ns;
  return observed_ns;
}

Status ReadWork(store::Store& store, Id128 device, const TimeRange& range, int64_t total,
                const SampleSize& size, ObservationBuilder& builder) {
  ASSIGN_OR_RETURN(const std::vector<TimeRange> windows, WindowsOf(store, device, range, total, size));
  const int64_t in_window = windows.size() == 1 ? size.operations : size.operations / size.windows;
  for (const TimeRange& window : windows)
    TRY(ReadWindow(store, device, range, window, kUnevenness * in_window, builder));
  return {};
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
  Observations observations;
  ASSIGN_OR_RETURN(observations.observed_ns, ReadObservedNs(store, selection));
  for (const store::GpuDevice& device : devices) {
    const auto count = counts.find(device.device);
    if (count == counts.end() && divided.contains(device.device)) continue;
    ObservationBuilder builder;
    if (count != counts.end()) TRY(ReadWork(store, device.device, range, count->second, size, builder));
    TRY(ReadActivity(store, device.device, range, builder));
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
  for (const auto& [device, count] : counts) TRY(ReadWork(store, device, range, count, each, builder));
  return builder.Build("", "").fingerprint;
}

}  // namespace gpusonde::fleet
