// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// 1234567 as "1.235 ms", -2500 as "−2.500 µs", whole µs without decimals, which a trace of µs doesn't have.
inline std::string Time(int64_t ns) {
  if (ns < 0) return "−" + Time(ns == INT64_MIN ? INT64_MAX : -ns);
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f} s", value / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.3f} ms", value / 1e6);
  if (ns >= 1'000 && ns % 1'000 == 0) return fmt::format("{} µs", ns / 1'000);
  if (ns >= 1'000) return fmt::format("{:.3f} µs", value / 1e3);
  return fmt::format("{} ns", ns);
}

// A ratio of 1.123 as "+12.3 %", 0.9 as "−10.0 %".
inline std::string Longer(double ratio) {
  return fmt::format("{}{:.1f} %", ratio < 1 ? "−" : "+", std::abs(ratio - 1) * 100);
}

// As "12.3 %"; "–" of nothing.
inline std::string Percent(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole))
                   : "–";
}

// With its first letter, of ASCII, in upper case.
inline std::string Capitalized(std::string text) {
  if (!text.empty()) text.front() = Upper(text.front());
  return text;
}

// 3448384 as "3.448 MB".
inline std::string Bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.3f} GB", value / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.3f} MB", value / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.3f} kB", value / 1e3);
  return Counted(bytes, "byte");
}

// 4.3e10 as "43.00 GB/s"; "–" if unknown.
inline std::string Rate(std::optional<double> bytes_per_s) {
  return bytes_per_s.has_value() ? fmt::format("{:.2f} GB/s", *bytes_per_s / 1e9) : "–";
}

// Of copies or sets, in GB/s as "43.00"; "–" where the trace doesn't have their sizes, which then are 0 (as
// in PyTorch's of AMD GPUs in 2022).
inline std::string GigabytesPerSecond(int64_t bytes, int64_t ns) {
  return bytes > 0 && ns > 0 ? fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(ns))
                             : "–";
}

// What they moved, as Bytes.
inline std::string Moved(int64_t bytes) { return bytes > 0 ? Bytes(bytes) : "–"; }

}  // namespace gpusonde::analyze
