// SPDX-License-Identifier: Apache-2.0
#include "usage/groups.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace gpusonde::usage {

void GroupsByName::Add(const std::string& name, const store::HolderFacts& holder, const model::HolderUse& use,
                       std::optional<double> sampled_utilization) {
  Group& group = by_name_[name];
  if (holder.without_process.has_value())
    group.without_process_ns += use.idle_ns;
  else
    group.processes.insert(holder.process);
  group.devices.insert(holder.device);
  group.use += use;
  if (!sampled_utilization.has_value()) return;
  group.sampled_busy_ns += *sampled_utilization * static_cast<double>(use.held_ns);
  group.sampled_ns += static_cast<double>(use.held_ns);
}

std::vector<Group> GroupsByName::Take() {
  std::vector<Group> groups;
  for (auto& [name, group] : by_name_) {
    group.name = name;
    groups.push_back(std::move(group));
  }
  by_name_.clear();
  std::ranges::stable_sort(groups, std::greater(),
                           [](const Group& group) { return AccountableNs(group.use); });
  return groups;
}

void AddDevices(std::span<const store::GpuDevice> devices, Usage& usage) {
  for (const store::GpuDevice& device : devices) {
    if (device.parent.has_value()) continue;
    usage.devices.insert(device.device);
    usage.simulated = usage.simulated || device.simulated;
  }
}

}  // namespace gpusonde::usage
