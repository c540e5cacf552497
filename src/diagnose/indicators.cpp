// SPDX-License-Identifier: Apache-2.0
#include "diagnose/indicator.h"

#include <array>

namespace gpusonde::diagnose {

const Indicator& CpuPressureIndicator();
const Indicator& EccErrorsIndicator();
const Indicator& IoPressureIndicator();
const Indicator& MemoryPressureIndicator();
const Indicator& PcieReplaysIndicator();
const Indicator& PowerIndicator();
const Indicator& TemperatureIndicator();

std::span<const Indicator* const> AllIndicators() {
  static const std::array kAll = {&CpuPressureIndicator(),    &EccErrorsIndicator(),   &IoPressureIndicator(),
                                  &MemoryPressureIndicator(), &PcieReplaysIndicator(), &PowerIndicator(),
                                  &TemperatureIndicator()};
  return kAll;
}

}  // namespace gpusonde::diagnose
