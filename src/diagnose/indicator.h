// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/id128.h"
#include "diagnose/cause_id.h"
#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// An indicator's evaluation.
struct Sign {
  double value = 0;
  std::optional<double> threshold;     // the value from which on the device slows down, if known
  std::optional<int64_t> expected_ns;  // when the value is expected to reach the threshold
  std::string sentence;                // for the report
};

// Detects that a signal moves as it does before steps become slow. Each indicator is a file under indicators/
// and a line in indicators.cpp.
struct Indicator {
  std::string_view name;  // as stored: temperature
  std::span<const CauseId> predicts;
  bool of_device = false;  // else of the machine
  // Returns a sign if the signal moves that way at `now_ns`; `device` is zero for the machine's indicators.
  std::optional<Sign> (*evaluate)(const HostTimeline& host, const Id128& device, int64_t now_ns);
};

// Sorted by name.
std::span<const Indicator* const> AllIndicators();

}  // namespace gpusonde::diagnose
