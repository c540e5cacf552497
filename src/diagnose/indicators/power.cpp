// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/indicators/readings.h"
#include "diagnose/indicators/thresholds.h"

namespace gpusonde::diagnose {
namespace {

constexpr std::array kPowerPredicts = {CauseId::kGpuClocks};

double MeanOf(const Readings& readings) {
  double sum = 0;
  for (const auto& [time_ns, value] : readings) sum += value;
  return sum / static_cast<double>(readings.size());
}

std::optional<Sign> EvaluatePower(const HostTimeline& host, const Id128& device, int64_t now_ns) {
  const auto& limits = kThresholds.power;
  const std::optional<double> limit =
      host.MeanReading(model::Metric::kGpuPowerLimit, device, {now_ns - limits.recent_ns, now_ns});
  const Readings now = host.ReadingsOf(model::Metric::kGpuPower, device, {now_ns - limits.recent_ns, now_ns});
  const Readings before = host.ReadingsOf(model::Metric::kGpuPower, device,
                                          {now_ns - limits.before_ns, now_ns - limits.recent_ns});
  if (!limit.has_value() || *limit <= 0 || now.size() < limits.min_recent ||
      before.size() < limits.min_before || IsThrottled(host, device, now_ns) ||
      MeanOf(now) < limits.near_limit * *limit || MeanOf(before) > limits.usual * *limit)
    return std::nullopt;
  return Sign{
      .value = MeanOf(now),
      .threshold = limit,
      .expected_ns = std::nullopt,
      .sentence = fmt::format("the GPU draws {:.0f} W ({:.0f} W in the minute before); at {:.0f} W it "
                              "lowers its clocks",
                              MeanOf(now), MeanOf(before), *limit)};
}

}  // namespace

const Indicator& PowerIndicator() {
  static constexpr Indicator kIndicator{"power", kPowerPredicts, true, EvaluatePower};
  return kIndicator;
}

}  // namespace gpusonde::diagnose
