// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace simgpu {

// A thermal model of a device: one thermal mass, heated by the power that its SMs draw.
struct PowerModel {
  double idle_w;
  double full_w;   // all SMs busy at full clock
  double limit_w;  // power cap
  double ambient_c;
  double c_per_w;     // thermal resistance of the cooler in steady state
  double tau_s;       // time constant: 63 % of a temperature change
  double slowdown_c;  // clocks fall above it
  double min_clock;   // share of the full clock below which throttling never goes
};

struct Throttling {
  double clock;  // share of the full clock, (0, 1]
  bool by_power;
  bool by_heat;
};

// Power in W with `share` of the SMs busy at `clock`. Voltage follows the clock, so power falls with its
// square.
double PowerW(const PowerModel& model, double share, double clock);

// The clock for work on a `share` of the SMs at this temperature, at most `clock_limit`.
Throttling ThrottlingAt(const PowerModel& model, double temperature_c, double share, double clock_limit);

// The temperature after `duration_ns` at `power_w`.
double TemperatureAfter(const PowerModel& model, double temperature_c, double power_w, int64_t duration_ns);

}  // namespace simgpu
