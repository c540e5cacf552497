// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace simgpu {

// What heat and power do to a device: one warm body, driven by what its SMs do.
struct PowerModel {
  double idle_w;
  double full_w;   // all SMs busy at full clock
  double limit_w;  // power cap
  double ambient_c;
  double c_per_w;     // of the cooler, at rest
  double tau_s;       // in which 63 % of a change of temperature has happened
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

// What the clocks do for work that takes `share` of the SMs at this temperature, under `clock_limit`.
Throttling ThrottlingAt(const PowerModel& model, double temperature_c, double share, double clock_limit);

// The temperature after `duration_ns` at `power_w`.
double TemperatureAfter(const PowerModel& model, double temperature_c, double power_w, int64_t duration_ns);

}  // namespace simgpu
