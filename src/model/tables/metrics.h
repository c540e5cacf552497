// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per value of a metric of the catalogue (docs/metrics.md).
struct MetricValue {
  int64_t time_ns = 0;
  Id128 source;
  std::optional<Id128> device;
  std::optional<Id128> process;
  std::string metric;
  double value = 0;
};

inline constexpr Table kMetrics("metrics", kFacts,
                                "One row per value of a metric of the catalogue (docs/metrics.md)",
                                Field("time_ns", &MetricValue::time_ns, "ns", "when"),
                                Field("source", &MetricValue::source, "", "the run that measured it"),
                                Field("device", &MetricValue::device, "", "the GPU, for metrics of a GPU"),
                                Field("process", &MetricValue::process, "",
                                      "the process, for metrics of a process"),
                                Field("metric", &MetricValue::metric, "", "name in the catalogue"),
                                Field("value", &MetricValue::value, "", "value in the metric's unit"));

}  // namespace gpusonde::model
