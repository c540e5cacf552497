// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "exporters/prometheus/live_totals.h"

namespace gpusonde::exporters {

// An ExportMetricsServiceRequest of OpenTelemetry's protocol, gzip'd.
struct OtlpMetrics {
  std::string request;
  int64_t data_points = 0;
};

// The metrics of a live agent at this moment: `now_ns` is monotonic, `epoch_ns` the same moment of the wall
// clock. What NVML reads has the names of OpenTelemetry's conventions for hardware (`hw.*`) where one has the
// same meaning, and else that of our catalogue after "gpusonde."; the families of Prometheus have
// their names without "_total" (docs/otlp.md). Thread-safe.
OtlpMetrics RenderOtlpMetrics(const prometheus::LiveTotals& totals, int64_t now_ns, int64_t epoch_ns,
                              const prometheus::OwnUse& own);

}  // namespace gpusonde::exporters
