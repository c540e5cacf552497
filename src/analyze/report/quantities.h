// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace gpusonde::analyze {

// 1234567 as "1.235 ms", -2000 as "−2.000 µs".
inline std::string Time(int64_t ns) {
  if (ns < 0) return "−" + Time(ns == INT64_MIN ? INT64_MAX : -ns);
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f} s", value / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.3f} ms", value / 1e6);
  if (ns >= 1'000) return fmt::format("{:.3f} µs", value / 1e3);
  return fmt::format("{} ns", ns);
}

}  // namespace gpusonde::analyze
