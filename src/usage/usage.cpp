// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "store/queries/usage_query.h"
#include "usage/groups.h"
#include "usage/names.h"

namespace gpusonde::usage {

Group& Group::operator+=(const Group& more) {
  processes.insert(more.processes.begin(), more.processes.end());
  devices.insert(more.devices.begin(), more.devices.end());
  use += more.use;
  without_process_ns += more.without_process_ns;
  sampled_busy_ns += more.sampled_busy_ns;
  sampled_ns += more.sampled_ns;
  return *this;
}

std::optional<double> Group::SampledUtilization() const {
  return sampled_ns > 0 ? std::optional(sampled_busy_ns / sampled_ns) : std::nullopt;
}

Group Usage::Total() const {
  Group total;
  for (const Group& group : groups) total += group;
  return total;
}

double AccountableNs(const model::HolderUse& use) { return use.busy_ns + use.idle_ns + use.unobserved_ns; }

Result<Usage> ReadUsage(store::Store& store, const model::Selection& selection, const SumBy& by) {
  ASSIGN_OR_RETURN(const store::GpuUsage read, store::ReadGpuUsage(store, selection));
  ASSIGN_OR_RETURN(const HolderNamer namer, HolderNamer::Read(store, read.devices));
  GroupsByName groups;
  for (const store::DeviceHolder& holder : read.holders)
    groups.Add(namer.Name(by, holder), holder, holder.use, holder.sampled_utilization);
  Usage usage{.range = read.range, .by = by, .groups = groups.Take()};
  usage.labels = namer.labels();
  AddDevices(read.devices, usage);
  return usage;
}

Usage Merge(std::vector<Usage> hosts) {
  Usage all;
  GroupsByName groups;
  for (Usage& host : hosts) {
    if (host.range.from_ns < host.range.to_ns) all.range = host.range;
    all.by = host.by;
    all.simulated = all.simulated || host.simulated;
    all.devices.merge(host.devices);
    all.labels.merge(host.labels);
    for (const Group& group : host.groups) groups.Add(group);
  }
  all.groups = groups.Take();
  return all;
}

}  // namespace gpusonde::usage
