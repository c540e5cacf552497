// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "privacy/random.h"

namespace gpusonde::privacy {

// Randomness that a test can repeat: another for each seed.
inline Random Seeded(uint8_t seed) {
  std::array<uint8_t, kKeyBytes> key{seed};
  return Random::FromKey(key);
}

}  // namespace gpusonde::privacy
