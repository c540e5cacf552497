// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusonde {

// Converts integers to and from little-endian bytes, on any machine.

template <std::unsigned_integral Integer>
void AppendLittleEndian(std::vector<uint8_t>& bytes, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// Reads from the first bytes, of which there must be enough.
template <std::unsigned_integral Integer>
Integer ReadLittleEndian(std::span<const uint8_t> bytes) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Integer>(value | static_cast<Integer>(Integer{bytes[i]} << (8 * i)));
  return value;
}

}  // namespace gpusonde
