// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde::pods {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A text or message as a field of a protobuf message, for tests.
inline std::string Bytes(uint32_t field, std::string_view content) {
  return Varint(uint64_t{field} << 3 | 2) + Varint(content.size()) + std::string(content);
}

// An integer as a field.
inline std::string Number(uint32_t field, uint64_t value) {
  return Varint(uint64_t{field} << 3) + Varint(value);
}

}  // namespace gpusonde::pods
