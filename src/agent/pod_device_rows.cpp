// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_device_rows.h"

#include <algorithm>
#include <vector>

#include "base/time.h"

namespace gpusonde::agent {

void PodDeviceRows::SetSource(const Id128& source, int64_t epoch_offset_ns) {
  const int64_t now_ns = MonotonicNow();
  std::vector<pods::PodDevice> lasting;
  for (auto& [device, row] : allocated_) {
    row.end_ns = now_ns + epoch_offset_ns_;
    rows_.Append(row);
    lasting.push_back(device);
  }
  allocated_.clear();
  source_ = source;
  epoch_offset_ns_ = epoch_offset_ns;
  for (const pods::PodDevice& device : lasting) Begin(device, now_ns);
}

void PodDeviceRows::Update(const pods::PodDevices& found, int64_t time_ns) {
  for (auto at = allocated_.begin(); at != allocated_.end();) {
    if (std::ranges::binary_search(found.devices, at->first)) {
      ++at;
      continue;
    }
    at->second.end_ns = time_ns + epoch_offset_ns_;
    rows_.Append(at->second);
    at = allocated_.erase(at);
  }
  for (const pods::PodDevice& device : found.devices) {
    const auto known = allocated_.find(device);
    if (known == allocated_.end()) {
      Begin(device, time_ns);
    } else if (!known->second.device.has_value()) {
      known->second.device = DeviceOf(device.id);
      if (known->second.device.has_value()) rows_.Append(known->second);
    }
  }
}

std::optional<model::Batch> PodDeviceRows::DrainRows() {
  return rows_.rows() > 0 ? std::optional(rows_.Take()) : std::nullopt;
}

void PodDeviceRows::Rewrite() {
  for (const auto& [device, row] : allocated_) rows_.Append(row);
}

void PodDeviceRows::Begin(const pods::PodDevice& device, int64_t time_ns) {
  const int64_t start_ns = time_ns + epoch_offset_ns_;
  model::PodDevice row{.allocation = IdHasher("pod_device")
                                         .Add(source_)
                                         .Add(device.pod_namespace)
                                         .Add(device.pod)
                                         .Add(device.container)
                                         .Add(device.resource)
                                         .Add(device.id)
                                         .Add(static_cast<uint64_t>(start_ns))
                                         .Finish(),
                       .source = source_,
                       .device = DeviceOf(device.id),
                       .device_name = device.id,
                       .resource = device.resource,
                       .pod = device.pod,
                       .pod_namespace = device.pod_namespace,
                       .container = device.container,
                       .start_ns = start_ns,
                       .end_ns = {}};
  rows_.Append(row);
  allocated_.emplace(device, std::move(row));
}

std::optional<Id128> PodDeviceRows::DeviceOf(std::string_view name) const {
  const pods::DeviceName meant = pods::DeviceNameOf(name);
  if (!meant.uuid.empty()) return DeviceIdOf(meant.uuid);
  std::optional<Id128> found;
  devices_->ForEach([&](const model::Device& device) {
    if (device.ordinal == meant.ordinal) found = device.device;
  });
  return found;
}

}  // namespace gpusonde::agent
