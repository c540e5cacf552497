// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/thermal.h"

#include <gtest/gtest.h>

namespace simgpu {
namespace {

constexpr PowerModel kModel = {.idle_w = 70,
                               .full_w = 700,
                               .limit_w = 700,
                               .ambient_c = 30,
                               .c_per_w = 0.06,
                               .tau_s = 20,
                               .slowdown_c = 87,
                               .min_clock = 0.3};

TEST(Thermal, WarmsTowardsTheSteadyStateOfItsPower) {
  const double at_rest_c = 30 + 0.06 * 70;
  EXPECT_NEAR(TemperatureAfter(kModel, at_rest_c, 70, 60'000'000'000), at_rest_c, 1e-9);
  const double full_c = 30 + 0.06 * 700;
  EXPECT_NEAR(TemperatureAfter(kModel, at_rest_c, 700, 20'000'000'000),
              full_c - (full_c - at_rest_c) / 2.718281828, 1e-6);
  // One step gives the same temperature as many.
  double stepwise_c = at_rest_c;
  for (int i = 0; i < 1000; ++i) stepwise_c = TemperatureAfter(kModel, stepwise_c, 700, 20'000'000);
  EXPECT_NEAR(stepwise_c, TemperatureAfter(kModel, at_rest_c, 700, 20'000'000'000), 1e-6);
}

TEST(Thermal, ClocksFallToMeetThePowerCap) {
  PowerModel capped = kModel;
  capped.limit_w = 350;
  const Throttling throttling = ThrottlingAt(capped, 50, 1, 1);
  EXPECT_TRUE(throttling.by_power);
  EXPECT_FALSE(throttling.by_heat);
  EXPECT_NEAR(PowerW(capped, 1, throttling.clock), 350, 1e-6);
  EXPECT_EQ(ThrottlingAt(capped, 50, 0.3, 1).clock, 1) << "a third of the SMs stays below the cap";
}

TEST(Thermal, HeatSlowsButNeverStopsTheClocks) {
  EXPECT_EQ(ThrottlingAt(kModel, 86, 1, 1).clock, 1);
  const Throttling hot = ThrottlingAt(kModel, 92, 1, 1);
  EXPECT_TRUE(hot.by_heat);
  EXPECT_LT(hot.clock, 1);
  EXPECT_EQ(ThrottlingAt(kModel, 500, 1, 1).clock, kModel.min_clock);
}

}  // namespace
}  // namespace simgpu
