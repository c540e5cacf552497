// SPDX-License-Identifier: Apache-2.0
#include "fleet/sampling.h"

#include <vector>

#include "base/int128.h"
#include "base/little_endian.h"
#include "privacy/random.h"

namespace gpusonde::fleet {

Assignment AssignmentOf(uint64_t device, uint32_t epoch, std::span<const uint8_t, 32> beacon, uint32_t groups,
                        uint32_t pages) {
  std::vector<uint8_t> data;
  AppendLittleEndian(data, device);
  AppendLittleEndian(data, epoch);
  const auto digest = privacy::Derive(beacon, "gpusonde sampling", data);
  const auto number = ReadLittleEndian<uint64_t>(digest.values());
  // Uniform but for (groups · pages)/2^64.
  const auto place = static_cast<uint64_t>((Uint128{number} * Uint128{groups} * pages) >> 64);
  return {static_cast<uint32_t>(place % groups), static_cast<uint32_t>(place / groups)};
}

}  // namespace gpusonde::fleet
