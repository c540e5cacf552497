// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/enums.h"

namespace gpusonde::model {

// The part of the data that a person looks at; the same on every page, in every query and in every link.
struct Selection {
  // Half-open, ns since the epoch.
  int64_t from_ns = std::numeric_limits<int64_t>::min();
  int64_t to_ns = std::numeric_limits<int64_t>::max();
  std::optional<Id128> process;
  // Only with `process`.
  std::optional<int32_t> tid;
  // Only stacks with a frame whose name contains this, ASCII case-insensitive; empty: all.
  std::string filter;
  // Only GPU work on this device; with `while_gpu_idle`, the device that has to be idle.
  std::optional<Id128> device;
  // Only GPU work on this stream. Only with `device`.
  std::optional<int64_t> stream;
  // Time in which threads waited, in place of time in which they ran.
  bool off_cpu = false;
  // Only waits for this. Only with `off_cpu`.
  std::optional<ThreadState> wait;
  // Only CPU time in which the device had nothing to do: no kernel, copy or set of anybody was running on any
  // of the devices that the process used, or without `process`, or where it used none (it may load data for
  // one that did), that anybody used. Time that nobody observed the devices in is left out.
  bool while_gpu_idle = false;
};

}  // namespace gpusonde::model
