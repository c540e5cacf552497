// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "store/queries/container_names.h"
#include "store/queries/usage_query.h"
#include "store/store.h"

namespace gpusonde::store {

// When a container of a pod had a device allocated, whoever used it.
struct PodHold {
  Id128 id;  // hash of the names, the same for each time it was allocated
  Id128 device;
  std::string host;
  HolderPod pod;
  std::vector<TimeRange> held;  // sorted, disjoint
};

// What was allocated in the range, of devices that the store knows: of MIG instances nothing says which GPU
// they are of. An allocation whose end nobody saw lasts until the end of the run that saw it. `runs` are
// those of ReadRunsByHost. Errors: those of Store::Query.
Result<std::vector<PodHold>> ReadPodHolds(Store& store, const TimeRange& range,
                                          const std::map<std::string, std::vector<TimeRange>>& runs);

// Whether a process in this cgroup belongs to the pod; true too for one in a pod whose name nobody found.
bool MayBeOf(std::string_view cgroup, const HolderPod& pod, const ContainerNames& names);

}  // namespace gpusonde::store
