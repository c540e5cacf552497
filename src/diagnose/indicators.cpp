// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/time.h"
#include "diagnose/indicator.h"

namespace gpusonde::diagnose {
namespace {

using model::Metric;
using Readings = std::vector<std::pair<int64_t, double>>;

// All constants here are chosen, not fitted; the table `warnings` shows how early and how often they are
// right.

double MeanOf(const Readings& readings) {
  double sum = 0;
  for (const auto& [time_ns, value] : readings) sum += value;
  return sum / static_cast<double>(readings.size());
}

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

bool IsThrottled(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return host.MeanReading(Metric::kGpuThrottleReasons, device, now_ns - 2 * kNanosPerSecond, now_ns,
                          model::kSlowingThrottleBits)
             .value_or(0) > 0;
}

// A device approaches its equilibrium temperature exponentially (Newton's law of cooling). The slopes of the
// two halves of the last 40 s determine the equilibrium, and when the limit is reached on the way there.
std::optional<Sign> Temperature(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  constexpr int64_t kHalfNs = 20 * kNanosPerSecond;
  constexpr ptrdiff_t kMinOfHalf = 15;
  constexpr double kMinRise = 3;  // °C over both halves: readings are whole degrees
  constexpr double kMaxSeconds = 180;
  if (IsThrottled(host, device, now_ns)) return std::nullopt;
  const std::optional<double> limit =
      host.MeanReading(Metric::kGpuTemperatureSlowdown, device, now_ns - 2 * kHalfNs, now_ns);
  const Readings readings = host.ReadingsOf(Metric::kGpuTemperature, device, now_ns - 2 * kHalfNs, now_ns);
  const auto middle =
      std::ranges::lower_bound(readings, now_ns - kHalfNs, {}, &std::pair<int64_t, double>::first);
  if (!limit.has_value() || middle - readings.begin() < kMinOfHalf || readings.end() - middle < kMinOfHalf)
    return std::nullopt;
  const auto earlier = SlopeOf({readings.begin(), middle});
  const auto later = SlopeOf({middle, readings.end()});
  const double now = readings.back().second;
  if (!earlier.has_value() || !later.has_value() || *later <= 0 || now >= *limit ||
      now - readings.front().second < kMinRise)
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
  if (!(seconds <= kMaxSeconds)) return std::nullopt;
  return Sign{.value = now,
              .threshold = limit,
              .expected_ns = now_ns + static_cast<int64_t>(seconds * 1e9),
              .sentence = fmt::format("the GPU is at {:.0f} °C and warms by {:.1f} °C per minute; at "
                                      "{:.0f} °C, in about {:.0f} s, it slows itself down",
                                      now, 60 * *later, *limit, seconds)};
}

std::optional<Sign> Power(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  constexpr double kNear = 0.95, kWasFar = 0.88;  // of the limit
  const std::optional<double> limit =
      host.MeanReading(Metric::kGpuPowerLimit, device, now_ns - 5 * kNanosPerSecond, now_ns);
  const Readings now = host.ReadingsOf(Metric::kGpuPower, device, now_ns - 5 * kNanosPerSecond, now_ns);
  const Readings before =
      host.ReadingsOf(Metric::kGpuPower, device, now_ns - 60 * kNanosPerSecond, now_ns - 5 * kNanosPerSecond);
  if (!limit.has_value() || *limit <= 0 || now.size() < 3 || before.size() < 10 ||
      IsThrottled(host, device, now_ns) || MeanOf(now) < kNear * *limit || MeanOf(before) > kWasFar * *limit)
    return std::nullopt;
  return Sign{
      .value = MeanOf(now),
      .threshold = limit,
      .expected_ns = std::nullopt,
      .sentence = fmt::format("the GPU draws {:.0f} W ({:.0f} W in the minute before); at {:.0f} W it "
                              "lowers its clocks",
                              MeanOf(now), MeanOf(before), *limit)};
}

// Whether a counter of corrected errors grows much faster than before.
std::optional<Sign> Growing(const HostTimeline& host, Metric counter, const Id128& device, int64_t now_ns,
                            std::string_view what) {
  constexpr int64_t kRecentNs = 30 * kNanosPerSecond, kBeforeNs = 120 * kNanosPerSecond;
  constexpr double kMin = 10, kFactor = 3;
  const Readings readings = host.ReadingsOf(counter, device, now_ns - kRecentNs - kBeforeNs, now_ns);
  if (readings.size() < 3) return std::nullopt;
  auto since = std::ranges::lower_bound(readings, now_ns - kRecentNs, {}, &std::pair<int64_t, double>::first);
  if (since != readings.begin()) --since;  // the value at the start of the window
  const auto& [since_ns, at_since] = *since;
  const double recent = readings.back().second - at_since;
  const double seconds = static_cast<double>(since_ns - readings.front().first) / 1e9;
  const double usual = seconds > 0 ? (at_since - readings.front().second) / seconds * 30 : 0;
  if (recent < kMin || recent < kFactor * usual) return std::nullopt;
  return Sign{.value = recent,
              .threshold = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("{:.0f} {} in the last 30 s (usually {:.0f})", recent, what,
                                      std::max(usual, 0.0))};
}

std::optional<Sign> PcieReplays(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return Growing(host, Metric::kGpuPcieReplays, device, now_ns, "PCIe packets were replayed");
}

std::optional<Sign> EccErrors(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return Growing(host, Metric::kGpuEccCorrected, device, now_ns, "memory errors were corrected");
}

// Whether pressure (PSI, some) is at least 10 % over the last 5 s, and much higher than in the minute before.
std::optional<Sign> Rising(const HostTimeline& host, Metric pressure, int64_t now_ns, std::string_view what) {
  constexpr int64_t kRecentNs = 5 * kNanosPerSecond, kBeforeNs = 60 * kNanosPerSecond;
  constexpr double kMin = 0.1, kFactor = 3;
  const auto before = host.SumOf(pressure, std::nullopt, now_ns - kBeforeNs, now_ns - kRecentNs);
  const auto recent = host.SumOf(pressure, std::nullopt, now_ns - kRecentNs, now_ns);
  const std::optional<int64_t> first_ns = host.FirstSumNs(pressure);
  if (!before.has_value() || !recent.has_value() || !first_ns.has_value() ||
      *first_ns > now_ns - 4 * kRecentNs)
    return std::nullopt;
  const double share = *recent / static_cast<double>(kRecentNs);
  const double usual =
      *before / static_cast<double>(now_ns - kRecentNs - std::max(*first_ns, now_ns - kBeforeNs));
  if (share < kMin || share < kFactor * usual) return std::nullopt;
  return Sign{.value = share,
              .threshold = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("{} pressure (PSI, some) {:.0f} % over the last 5 s, {:.0f} % over the "
                                      "minute before",
                                      what, 100 * share, 100 * usual)};
}

std::optional<Sign> CpuPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return Rising(host, Metric::kHostPressureCpu, now_ns, "CPU");
}
std::optional<Sign> IoPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return Rising(host, Metric::kHostPressureIo, now_ns, "I/O");
}
std::optional<Sign> MemoryPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return Rising(host, Metric::kHostPressureMemory, now_ns, "memory");
}

constexpr std::array<std::string_view, 1> kClocks = {"gpu_clocks"};
constexpr std::array<std::string_view, 2> kFault = {"gpu_fault", "hang"};
constexpr std::array<std::string_view, 1> kPcie = {"pcie_pressure"};
constexpr std::array<std::string_view, 3> kCpu = {"cpu_contention", "cpu_contention_own", "cpu_quota"};
constexpr std::array<std::string_view, 2> kIo = {"block_io", "io_throttling"};
constexpr std::array<std::string_view, 2> kMemory = {"memory_pressure", "block_io"};

}  // namespace

std::span<const Indicator> AllIndicators() {
  static constexpr std::array kIndicators = {
      Indicator{"cpu_pressure", kCpu, false, CpuPressure},
      Indicator{"ecc_errors", kFault, true, EccErrors},
      Indicator{"io_pressure", kIo, false, IoPressure},
      Indicator{"memory_pressure", kMemory, false, MemoryPressure},
      Indicator{"pcie_replays", kPcie, true, PcieReplays},
      Indicator{"power", kClocks, true, Power},
      Indicator{"temperature", kClocks, true, Temperature},
  };
  return kIndicators;
}

}  // namespace gpusonde::diagnose
