// SPDX-License-Identifier: Apache-2.0
#include "fleet/sampling.h"

#include "base/int128.h"
#include "privacy/random.h"

namespace gpusonde::fleet {

Assignment AssignmentOf(uint64_t device, uint32_t epoch, std::span<const uint8_t, 32> beacon, uint32_t groups,
                        uint32_t pages) {
  std::array<uint8_t, sizeof device + sizeof epoch> data;
  for (size_t i = 0; i < sizeof device; ++i) data[i] = static_cast<uint8_t>(device >> (8 * i));
  for (size_t i = 0; i < sizeof epoch; ++i) data[sizeof device + i] = static_cast<uint8_t>(epoch >> (8 * i));
  const auto digest = privacy::Derive(beacon, "gpusonde sampling", data);
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number |= uint64_t{digest.values()[i]} << (8 * i);
  // Uniform but for (groups · pages)/2^64.
  const auto place = static_cast<uint64_t>((Uint128{number} * Uint128{groups} * pages) >> 64);
  return {static_cast<uint32_t>(place % groups), static_cast<uint32_t>(place / groups)};
}

}  // namespace gpusonde::fleet
