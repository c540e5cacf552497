// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/little_endian.h"
#include "fleet/privacy/random.h"

namespace gpusonde::fleet {

// Derives all secrets and random choices of a simulation from its seed: 32 bytes for each label and numbers.
inline privacy::Wiped<uint8_t> SeedBytes(uint64_t seed, std::string_view label, uint64_t a = 0,
                                         uint64_t b = 0) {
  std::array<uint8_t, privacy::kKeyBytes> key{};
  for (size_t i = 0; i < sizeof seed; ++i) key[i] = static_cast<uint8_t>(seed >> (8 * i));
  std::vector<uint8_t> data;
  AppendLittleEndian(data, a);
  AppendLittleEndian(data, b);
  return privacy::Derive(key, label, data);
}

inline privacy::Random SeededRandom(uint64_t seed, std::string_view label, uint64_t a = 0, uint64_t b = 0) {
  return privacy::Random::FromKey(privacy::KeyBytes(SeedBytes(seed, label, a, b).values()));
}

// Uniform in [0, 1).
inline double DrawUnit(privacy::Random& random) { return static_cast<double>(random.Next() >> 11) * 0x1p-53; }

// Exponential with this mean.
inline double DrawExponential(double mean, privacy::Random& random) {
  return -mean * std::log1p(-DrawUnit(random));
}

}  // namespace gpusonde::fleet
