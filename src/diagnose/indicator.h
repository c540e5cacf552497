// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/id128.h"
#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// What an indicator sees.
struct Sign {
  double value = 0;
  std::optional<double> most;          // the value from which on it does harm, where that is known
  std::optional<int64_t> expected_ns;  // when that would be reached
  std::string sentence;                // what to tell a person
};

// A signal that moves before steps slow, in the hope that somebody acts in time.
struct Indicator {
  std::string_view name;                        // as stored: temperature
  std::span<const std::string_view> foretells;  // causes by name
  bool of_device = false;                       // else of the machine
  // Whether it moves that way at `now_ns`; `device` is zero for the machine's.
  std::optional<Sign> (*look)(const HostTimeline& host, const Id128& device, int64_t now_ns);
};

// By name.
std::span<const Indicator> AllIndicators();

}  // namespace gpusonde::diagnose
