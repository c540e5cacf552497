// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
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

// Who held a device: a process; or a container of a pod that had it allocated, for the time in which no
// process of the pod held it.
struct HolderFacts {
  Id128 process = {};  // of a container: a hash of its names
  Id128 device = {};
  std::string host = {};
  std::optional<HolderPod> without_process = {};  // null: it is a process
  int32_t pid = 0;
  std::string name = {};
  std::string command = {};
  std::string cgroup = {};              // path
  std::optional<int32_t> user_id = {};  // null: unknown
};

// What it did with the device.
struct DeviceHolder : HolderFacts {
  model::HolderUse use = {};
  // NVML's own figure, 0…1: the mean of its readings of the process's SM time. Null without readings.
  std::optional<double> sampled_utilization = {};
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

// From when to when work or memory of a process was seen on a device: by device and process.
using Sightings = std::map<std::pair<Id128, Id128>, TimeRange>;

inline constexpr int64_t kUsageHourNs = 3'600 * kNanosPerSecond;

// A holder's part of an hour of UTC.
struct HolderHour {
  int64_t start_ns = 0;
  size_t holder = 0;  // of GpuUsageHours::holders
  double busy_ns = 0;
  double idle_ns = 0;
  double unobserved_ns = 0;
  int64_t held_ns = 0;
  // NVML's readings of the process's SM time, each 0…1, and how many there are.
  double readings_sum = 0;
  int64_t readings = 0;
};

struct GpuUsageHours {
  TimeRange range;        // from the begin of an hour to the last sign of life; empty without data
  int64_t oldest_ns = 0;  // when the store's data begins
  std::vector<GpuDevice> devices;
  std::vector<HolderFacts> holders;
  std::vector<HolderHour> hours;  // by start and holder
};

// What ReadGpuUsage says of the last `max_hours` hours, or from `from_ns` on if that is later, hour by hour:
// the parts of hours sum up to the use of their range. `seen` has what was seen before `from_ns`, and gets
// what was seen since, of those who held a device in the hours read; when everything is read, `from_ns` is 0
// and `seen` empty. Errors: those of store::Query.
Result<GpuUsageHours> ReadGpuUsageHours(Store& store, int64_t from_ns, int64_t max_hours, Sightings& seen);

}  // namespace gpusonde::store
