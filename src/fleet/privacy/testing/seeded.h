// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "fleet/privacy/random.h"

namespace gpusonde::privacy {

// Repeatable randomness for tests, by seed.
inline Random Seeded(uint8_t seed) {
  std::array<uint8_t, kKeyBytes> key{seed};
  return Random::FromKey(key);
}

}  // namespace gpusonde::privacy
