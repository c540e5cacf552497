// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/device_account.h"
#include "model/selection.h"
#include "store/queries/gpu_query.h"
#include "store/store.h"

namespace gpusonde::store {

// A pod's container, as kubelet names it.
struct HolderPod {
  std::string pod_namespace;
  std::string pod;
  std::string container;

  auto operator<=>(const HolderPod&) const = default;
};

// A process that held a device, and what it did with it; or a container of a pod that had it allocated, for
// the time in which no process of the pod held it.
struct DeviceHolder {
  Id128 process;  // of a container: a hash of its names
  Id128 device;
  std::string host;
  std::optional<HolderPod> without_process;  // null: it is a process
  int32_t pid = 0;
  std::string name;
  std::string command;
  std::string cgroup;  // path
  int32_t user_id = 0;
  model::HolderUse use;
  // NVML's own figure, 0…1: the mean of its readings of the process's SM time. Null without readings.
  std::optional<double> sampled_utilization;
};

struct GpuUsage {
  TimeRange range;  // empty without data
  std::vector<GpuDevice> devices;
  std::vector<DeviceHolder> holders;  // by device, in the order of `devices`, then by pid
};

// Who held the devices in the selection's time range, and used or wasted them: model::DeviceAccount says how
// instants are shared. A process holds a device from its first work or NVML reading of its memory on it until
// it ends; a process whose end nobody saw, until the end of the run that last saw it. What a pod has
// allocated, but no process of it holds, it holds idle. Time in which gpusonde didn't run counts for nobody.
// Minutes in which one process alone held and used a device are read from roll-ups, others in rows. Errors:
// those of Store::Query.
Result<GpuUsage> ReadGpuUsage(Store& store, const model::Selection& selection);

}  // namespace gpusonde::store
