// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/host_timeline.h"
#include "diagnose/indicator.h"

// What several indicators do.
namespace gpusonde::diagnose {

using Readings = std::vector<std::pair<int64_t, double>>;  // (time, value)

// Whether the device's clocks are throttled.
bool IsThrottled(const HostTimeline& host, const Id128& device, int64_t now_ns);

// Returns a sign if a counter of corrected errors grows much faster than before. `what`: "PCIe packets were
// replayed".
std::optional<Sign> EvaluateErrors(const HostTimeline& host, model::Metric counter, const Id128& device,
                                   int64_t now_ns, std::string_view what);

// Returns a sign if pressure (PSI, some) is high over the last seconds, and much higher than in the minute
// before. `what`: "memory".
std::optional<Sign> EvaluatePressure(const HostTimeline& host, model::Metric pressure, int64_t now_ns,
                                     std::string_view what);

}  // namespace gpusonde::diagnose
