// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fleet/privacy/masks.h"

// A device's measurements of one epoch as the row of a report: 63 bins that sum to exactly 255, and the
// contributor slot. Every report has the same weight, however long its device worked, so that its size
// identifies no device.
namespace gpusonde::fleet {

inline constexpr size_t kBins = privacy::kRowSlots - 1;
using Bins = std::array<double, kBins>;                // weights, any scale
using Row = std::array<uint32_t, privacy::kRowSlots>;  // bins, then the contributor

// Rounds weights to whole numbers that sum to 255, by largest remainders (Hamilton's method), ties to the
// lowest bin: no bin is off by 1 or more. Everything in bin 0 if all weights are 0. Weights that are
// negative or not finite count as 0.
Row RoundToReport(const Bins& weights);

}  // namespace gpusonde::fleet
