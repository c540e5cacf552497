// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per metric of one kernel launch, from Nsight Compute.
struct KernelMetric {
  Id128 process;
  Id128 device;
  int64_t launch = 0;
  std::string name;
  std::string metric;
  std::string unit;
  double value = 0;
};

inline constexpr Table kKernelMetrics(
    "kernel_metrics", kFacts, "One row per metric of one kernel launch, from Nsight Compute",
    Field("process", &KernelMetric::process, "", "the launching process"),
    Field("device", &KernelMetric::device, "", "where"),
    Field("launch", &KernelMetric::launch, "", "number of the launch in the file, from 0"),
    Field("name", &KernelMetric::name, "", "kernel name"),
    Field("metric", &KernelMetric::metric, "", "metric name"),
    Field("unit", &KernelMetric::unit, "", "unit after conversion to a base unit"),
    Field("value", &KernelMetric::value, "", "value in `unit`"));

}  // namespace gpusonde::model
