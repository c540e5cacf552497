// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/enums.h"

namespace gpusonde::model {

// The selected part of the data; the same for every page, query and link.
struct Selection {
  // Half-open, ns since the epoch.
  int64_t from_ns = std::numeric_limits<int64_t>::min();
  int64_t to_ns = std::numeric_limits<int64_t>::max();
  // Only of these; empty: of all.
  std::vector<Id128> processes;
  // Only with one process.
  std::optional<int32_t> tid;
  // Only stacks with a frame whose name contains this, ASCII case-insensitive; empty: all.
  std::string filter;
  // Only GPU work on this device; with `while_gpu_idle`, the device that has to be idle.
  std::optional<Id128> device;
  // Only GPU work on this stream. Only with `device`.
  std::optional<int64_t> stream;
  // Off-CPU time instead of CPU time.
  bool off_cpu = false;
  // Only waits of this kind. Only with `off_cpu`.
  std::optional<ThreadState> wait;
  // Only CPU time while the devices were idle: no kernel, copy or set of any program ran on the devices that
  // the processes used. Without `processes`, or if these used none (they may load data for one that
  // did), all used devices count. Time in which devices were not observed is left out.
  bool while_gpu_idle = false;

  bool operator==(const Selection&) const = default;
};

}  // namespace gpusonde::model
