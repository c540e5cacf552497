// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace gpusonde::unwind {

// Reads numbers from untrusted bytes, in the encodings of DWARF on a little-endian machine. A read beyond the
// end returns 0 and sets failed(), which can be checked once at the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Allows for some padding; without a bound, overlapping numbers would be read in quadratic time.
  static constexpr uint32_t kMaxLebBytes = 16;

  bool failed() const { return failed_; }
  void Fail() { failed_ = true; }
  bool AtEnd() const { return failed_ || position_ == bytes_.size(); }
  size_t position() const { return position_; }

  template <class T>
    requires std::is_integral_v<T>
  T Read() {
    T value{};
    const std::span<const std::byte> bytes = Take(sizeof value);
    if (!failed_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  // LEB128 (DWARF 5, section 7.6). Bits beyond 64 are dropped, as in other readers; a number of more than
  // kMaxLebBytes fails.
  uint64_t ReadUleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 7 * kMaxLebBytes; shift += 7) {
      const auto byte = Read<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }
  int64_t ReadSleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 7 * kMaxLebBytes;) {
      const auto byte = Read<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    failed_ = true;
    return 0;
  }

  // All bytes not read yet; empty after a failure.
  std::span<const std::byte> Rest() const {
    return failed_ ? std::span<const std::byte>() : bytes_.subspan(position_);
  }

  // The next `count` bytes; fails and returns none if there are fewer.
  std::span<const std::byte> Take(uint64_t count) {
    if (failed_ || count > bytes_.size() - position_) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace gpusonde::unwind
