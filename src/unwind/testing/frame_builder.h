// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gpusonde::unwind {

// Builds a section with call frame information, entry by entry.
class FrameBuilder {
 public:
  void Put8(int value) { bytes.push_back(static_cast<std::byte>(value)); }
  template <class T>
  void Put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(&bytes[at], &value, sizeof value);
  }
  // Adds an entry with the contents written by `body`; returns where it begins.
  template <class Body>
  size_t Entry(Body&& body) {
    const size_t at = bytes.size();
    Put(uint32_t{0});
    body();
    while ((bytes.size() - at) % 8 != 0) Put8(0);
    const auto length = static_cast<uint32_t>(bytes.size() - at - 4);
    std::memcpy(&bytes[at], &length, sizeof length);
    return at;
  }
  std::vector<std::byte> bytes;
};

}  // namespace gpusonde::unwind
