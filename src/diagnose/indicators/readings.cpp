// SPDX-License-Identifier: Apache-2.0
#include "diagnose/indicators/readings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"
#include "diagnose/indicators/thresholds.h"

namespace gpusonde::diagnose {

bool IsThrottled(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  return host.MeanReading(model::Metric::kGpuThrottleReasons, device, {now_ns - 2 * kNanosPerSecond, now_ns},
                          model::kSlowingThrottleBits)
             .value_or(0) > 0;
}

std::optional<Sign> EvaluateErrors(const HostTimeline& host, model::Metric counter, const Id128& device,
                                   int64_t now_ns, std::string_view what) {
  const auto& errors = kThresholds.errors;
  constexpr double kRecentSeconds = static_cast<double>(kThresholds.errors.recent_ns) / kNanosPerSecond;
  const Readings readings =
      host.ReadingsOf(counter, device, {now_ns - errors.recent_ns - errors.before_ns, now_ns});
  if (readings.size() < errors.min_readings) return std::nullopt;
  auto since =
      std::ranges::lower_bound(readings, now_ns - errors.recent_ns, {}, &std::pair<int64_t, double>::first);
  if (since != readings.begin()) --since;  // the value at the start of the window
  const auto& [since_ns, at_since] = *since;
  const double recent = readings.back().second - at_since;
  const double seconds = static_cast<double>(since_ns - readings.front().first) / 1e9;
  const double usual = seconds > 0 ? (at_since - readings.front().second) / seconds * kRecentSeconds : 0;
  if (recent < errors.min || recent < errors.factor * usual) return std::nullopt;
  return Sign{.value = recent,
              .threshold = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("{:.0f} {} in the last {:.0f} s (usually {:.0f})", recent, what,
                                      kRecentSeconds, std::max(usual, 0.0))};
}

std::optional<Sign> EvaluatePressure(const HostTimeline& host, model::Metric pressure, int64_t now_ns,
                                     std::string_view what) {
  const auto& limits = kThresholds.pressure;
  const auto before =
      host.SumOf(pressure, std::nullopt, {now_ns - limits.before_ns, now_ns - limits.recent_ns});
  const auto recent = host.SumOf(pressure, std::nullopt, {now_ns - limits.recent_ns, now_ns});
  const std::optional<int64_t> first_ns = host.FirstSumNs(pressure);
  if (!before.has_value() || !recent.has_value() || !first_ns.has_value() ||
      *first_ns > now_ns - limits.min_known_ns)
    return std::nullopt;
  const double share = *recent / static_cast<double>(limits.recent_ns.value);
  const double usual = *before / static_cast<double>(now_ns - limits.recent_ns -
                                                     std::max(*first_ns, now_ns - limits.before_ns));
  if (share < limits.min || share < limits.factor * usual) return std::nullopt;
  return Sign{.value = share,
              .threshold = std::nullopt,
              .expected_ns = std::nullopt,
              .sentence = fmt::format("{} pressure (PSI, some) {:.0f} % over the last 5 s, {:.0f} % over the "
                                      "minute before",
                                      what, 100 * share, 100 * usual)};
}

}  // namespace gpusonde::diagnose
