// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "diagnose/indicators/readings.h"
#include "diagnose/indicators/thresholds.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kTemperaturePredicts = {CauseId::kGpuClocks};

// Least-squares slope per second; nullopt for fewer than two distinct times.
std::optional<double> SlopeOf(std::span<const std::pair<int64_t, double>> readings) {
  if (readings.size() < 2) return std::nullopt;
  const int64_t origin_ns = readings.front().first;
  double time = 0, value = 0;
  const auto seconds = [&](int64_t time_ns) { return static_cast<double>(time_ns - origin_ns) / 1e9; };
  for (const auto& [time_ns, reading] : readings) {
    time += seconds(time_ns);
    value += reading;
  }
  const auto count = static_cast<double>(readings.size());
  time /= count;
  value /= count;
  double both = 0, squares = 0;
  for (const auto& [time_ns, reading] : readings) {
    both += (seconds(time_ns) - time) * (reading - value);
    squares += (seconds(time_ns) - time) * (seconds(time_ns) - time);
  }
  return squares > 0 ? std::optional(both / squares) : std::nullopt;
}

// A device approaches its equilibrium temperature exponentially (Newton's law of cooling). The slopes of the
// two halves of the last 40 s determine the equilibrium, and when the limit is reached on the way there. They
// don't if work began or grew meanwhile: then the device warmed more slowly in the 20 s before.
std::optional<Sign> EvaluateTemperature(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  const auto& limits = kThresholds.temperature;
  constexpr int64_t kHalfNs = kThresholds.temperature.half_ns;
  if (IsThrottled(host, device, now_ns)) return std::nullopt;
  const std::optional<double> limit =
      host.MeanReading(model::Metric::kGpuTemperatureSlowdown, device, {now_ns - 2 * kHalfNs, now_ns});
  const Readings before =
      host.ReadingsOf(model::Metric::kGpuTemperature, device, {now_ns - 3 * kHalfNs, now_ns - 2 * kHalfNs});
  const Readings readings =
      host.ReadingsOf(model::Metric::kGpuTemperature, device, {now_ns - 2 * kHalfNs, now_ns});
  const auto middle =
      std::ranges::lower_bound(readings, now_ns - kHalfNs, {}, &std::pair<int64_t, double>::first);
  if (!limit.has_value() || std::ssize(before) < limits.min_of_half ||
      middle - readings.begin() < limits.min_of_half || readings.end() - middle < limits.min_of_half)
    return std::nullopt;
  const auto earlier = SlopeOf({readings.begin(), middle});
  const auto later = SlopeOf({middle, readings.end()});
  const auto at_first = SlopeOf(before);
  const double now = readings.back().second;
  if (!earlier.has_value() || !later.has_value() || *later <= 0 || now >= *limit ||
      now - readings.front().second < limits.min_rise)
    return std::nullopt;
  if (!at_first.has_value() || *at_first < limits.steady * *earlier || *earlier < limits.steady * *later)
    return std::nullopt;
  double seconds = (*limit - now) / *later;  // linear, unless the warming slows down
  if (*earlier > *later) {
    const double tau = static_cast<double>(kHalfNs) / 1e9 / std::log(*earlier / *later);
    // Extrapolate the later slope from the middle of its half to now.
    const double slope = *later * std::exp(-static_cast<double>(kHalfNs) / 2e9 / tau);
    const double equilibrium = now + slope * tau;
    if (equilibrium <= *limit) return std::nullopt;
    seconds = -tau * std::log((equilibrium - *limit) / (equilibrium - now));
  }
  if (!(seconds <= limits.max_seconds)) return std::nullopt;
  return Sign{.value = now,
              .threshold = limit,
              .expected_ns = now_ns + static_cast<int64_t>(seconds * 1e9),
              .sentence = fmt::format("the GPU is at {:.0f} °C and warms by {:.1f} °C per minute; at "
                                      "{:.0f} °C, in about {:.0f} s, it slows itself down",
                                      now, 60 * *later, *limit, seconds)};
}

}  // namespace

const Indicator& TemperatureIndicator() {
  static constexpr Indicator kIndicator{"temperature", kTemperaturePredicts, true, EvaluateTemperature};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
