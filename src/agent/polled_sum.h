// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "base/time_range.h"
#include "model/metric_catalogue.h"
#include "model/tables/signals.h"

namespace gpusonde::agent {

// A row of what a counter grew by between two readings, or of the time in a state; `process` is null for the
// machine. `between`: ns since the epoch.
inline model::Signal PolledSum(const Id128& source, const TimeRange& between, model::Metric metric,
                               std::optional<Id128> process, int64_t sum) {
  return {.start_ns = between.from_ns,
          .bucket_ns = between.to_ns - between.from_ns,
          .source = source,
          .metric = std::string(model::InfoOf(metric).name),
          .process = process,
          .tid = std::nullopt,
          .other = std::nullopt,
          .values = {sum}};
}

}  // namespace gpusonde::agent
