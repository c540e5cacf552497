// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/drops.h"
#include "model/metric_catalogue.h"

namespace gpusonde::nvml {

// One value of one metric.
struct Reading {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  size_t device = 0;    // index in the producer's list of devices
  int32_t pid = 0;  // value of this process (in the pid namespace of NVML's caller); 0: of the whole device
  model::Metric metric{};
  double value = 0;  // in the metric's unit
};

// A message for the log.
struct Notice {
  bool is_problem = false;  // something went wrong; else a fact about the machine
  std::string text;
  bool operator==(const Notice&) const = default;
};

// Readings, notices and drops since the last call.
struct PollResult {
  std::vector<Reading> readings;
  std::vector<Notice> notices;
  model::DropCounts drops;
};

}  // namespace gpusonde::nvml
