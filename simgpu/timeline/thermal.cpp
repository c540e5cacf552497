// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/thermal.h"

#include <algorithm>
#include <cmath>

namespace simgpu {

double PowerW(const PowerModel& model, double share, double clock) {
  return model.idle_w + (model.full_w - model.idle_w) * share * clock * clock;
}

Throttling ThrottlingAt(const PowerModel& model, double temperature_c, double share, double clock_limit) {
  Throttling result{.clock = clock_limit, .by_power = false, .by_heat = false};
  if (share > 0 && PowerW(model, share, result.clock) > model.limit_w) {
    const double room = std::max(0.0, model.limit_w - model.idle_w) / ((model.full_w - model.idle_w) * share);
    result.clock = std::sqrt(room);
    result.by_power = true;
  }
  if (temperature_c > model.slowdown_c) {
    // 4 % per degree: the clocks of real devices are halved about 12 °C above the slowdown temperature.
    const double cool = 1 - 0.04 * (temperature_c - model.slowdown_c);
    result.by_heat = true;
    result.clock = std::min(result.clock, cool);
  }
  result.clock = std::clamp(result.clock, model.min_clock, 1.0);
  return result;
}

double TemperatureAfter(const PowerModel& model, double temperature_c, double power_w, int64_t duration_ns) {
  const double target_c = model.ambient_c + model.c_per_w * power_w;
  return target_c +
         (temperature_c - target_c) * std::exp(-1e-9 * static_cast<double>(duration_ns) / model.tau_s);
}

}  // namespace simgpu
