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

// All constants here are chosen, not fitted: `warnings` tells how often, and how early, they were right.

double MeanOf(const Readings& readings) {
  double sum = 0;
  for (const auto& [time_ns, value] : readings) sum += value;
  return sum / static_cast<double>(readings.size());
}

// By least squares, per second; nothing of fewer than two times.
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

// A device warms towards an equilibrium, ever more slowly (Newton's law): from the slopes of two halves of
// the last 40 s follows where that lies and when the limit on the way there is reached.
std::optional<Sign> Temperature(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  constexpr int64_t kHalfNs = 20 * kNanosPerSecond;
  constexpr ptrdiff_t kLeastOfHalf = 15;
  constexpr double kLeastRise = 3;  // °C within both: readings are whole degrees
  constexpr double kMostSeconds = 180;
  if (IsThrottled(host, device, now_ns)) return std::nullopt;
  const std::optional<double> limit =
      host.MeanReading(Metric::kGpuTemperatureSlowdown, device, now_ns - 2 * kHalfNs, now_ns);
  const Readings readings = host.ReadingsOf(Metric::kGpuTemperature, device, now_ns - 2 * kHalfNs, now_ns);
  const auto middle =
      std::ranges::lower_bound(readings, now_ns - kHalfNs, {}, &std::pair<int64_t, double>::first);
  if (!limit.has_value() || middle - readings.begin() < kLeastOfHalf ||
      readings.end() - middle < kLeastOfHalf)
    return std::nullopt;
  const auto earlier = SlopeOf({readings.begin(), middle});
  const auto later = SlopeOf({middle, readings.end()});
  const double now = readings.back().second;
  if (!earlier.has_value() || !later.has_value() || *later <= 0 || now >= *limit ||
      now - readings.front().second < kLeastRise)
    return std::nullopt;
  double seconds = (*limit - now) / *later;  // where it doesn't slow down: on a line
  if (*earlier > *later) {
    const double tau = static_cast<double>(kHalfNs) / 1e9 / std::log(*earlier / *later);
    // The later slope is that of the middle of its half.
    const double slope = *later * std::exp(-static_cast<double>(kHalfNs) / 2e9 / tau);
    const double equilibrium = now + slope * tau;
    if (equilibrium <= *limit) return std::nullopt;
    seconds = -tau * std::log((equilibrium - *limit) / (equilibrium - now));
  }
  if (!(seconds <= kMostSeconds)) return std::nullopt;
  return Sign{.value = now,
              .most = limit,
              .expected_ns = now_ns + static_cast<int64_t>(seconds * 1e9),
              .sentence = fmt::format("the GPU is at {:.0f} °C, {:.1f} °C more each minute; from {:.0f} °C "
                                      "on, in about {:.0f} s, it slows itself down",
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
  return Sign{.value = MeanOf(now),
              .most = limit,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("the GPU draws {:.0f} W, {:.0f} W in the minute before; at {:.0f} W it "
                                      "lowers its clocks",
                                      MeanOf(now), MeanOf(before), *limit)};
}

// A counter of errors that are still mended: many of late, and more than there used to be.
std::optional<Sign> Growing(const HostTimeline& host, Metric counter, const Id128& device, int64_t now_ns,
                            std::string_view what) {
  constexpr int64_t kLatelyNs = 30 * kNanosPerSecond, kBeforeNs = 120 * kNanosPerSecond;
  constexpr double kLeast = 10, kTimes = 3;
  const Readings readings = host.ReadingsOf(counter, device, now_ns - kLatelyNs - kBeforeNs, now_ns);
  if (readings.size() < 3) return std::nullopt;
  auto since = std::ranges::lower_bound(readings, now_ns - kLatelyNs, {}, &std::pair<int64_t, double>::first);
  if (since != readings.begin()) --since;  // the last one before still stood then
  const auto& [since_ns, at_since] = *since;
  const double lately = readings.back().second - at_since;
  const double seconds = static_cast<double>(since_ns - readings.front().first) / 1e9;
  const double usual = seconds > 0 ? (at_since - readings.front().second) / seconds * 30 : 0;
  if (lately < kLeast || lately < kTimes * usual) return std::nullopt;
  return Sign{.value = lately,
              .most = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("{:.0f} {} in the last 30 s, {:.0f} in such a time before", lately,
                                      what, std::max(usual, 0.0))};
}

std::optional<Sign> PcieReplays(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return Growing(host, Metric::kGpuPcieReplays, device, now_ns, "packets were sent again over PCIe");
}

std::optional<Sign> EccErrors(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return Growing(host, Metric::kGpuEccCorrected, device, now_ns, "memory errors were corrected");
}

// Time in which somebody waited: a tenth of the last seconds, and far more than in the minute before.
std::optional<Sign> Rising(const HostTimeline& host, Metric pressure, int64_t now_ns, std::string_view what) {
  constexpr int64_t kLatelyNs = 5 * kNanosPerSecond, kBeforeNs = 60 * kNanosPerSecond;
  constexpr double kLeast = 0.1, kTimes = 3;
  const auto before = host.SumOf(pressure, std::nullopt, now_ns - kBeforeNs, now_ns - kLatelyNs);
  const auto lately = host.SumOf(pressure, std::nullopt, now_ns - kLatelyNs, now_ns);
  const std::optional<int64_t> first_ns = host.FirstSumNs(pressure);
  if (!before.has_value() || !lately.has_value() || !first_ns.has_value() ||
      *first_ns > now_ns - 4 * kLatelyNs)
    return std::nullopt;
  const double share = *lately / static_cast<double>(kLatelyNs);
  const double usual =
      *before / static_cast<double>(now_ns - kLatelyNs - std::max(*first_ns, now_ns - kBeforeNs));
  if (share < kLeast || share < kTimes * usual) return std::nullopt;
  return Sign{.value = share,
              .most = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("somebody on this machine waited for {} {:.0f} % of the last 5 s, "
                                      "{:.0f} % of the minute before",
                                      what, 100 * share, 100 * usual)};
}

std::optional<Sign> CpuPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return Rising(host, Metric::kHostPressureCpu, now_ns, "a CPU");
}
std::optional<Sign> IoPressure(const HostTimeline& host, const Id128&, int64_t now_ns) {
  return Rising(host, Metric::kHostPressureIo, now_ns, "a device");
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
