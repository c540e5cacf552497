// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

// The state that a role needs to go on after a restart, and what roles send each other, as bytes. Those of a
// state hold keys: they must stay secret, and nobody may return to older ones (docs/fleet/privacy.md,
// Limits).
namespace gpusonde::privacy {

// Wipes memory before it is freed.
template <class T>
struct WipingAllocator {
  using value_type = T;

  WipingAllocator() = default;
  template <class U>
  explicit WipingAllocator(const WipingAllocator<U>& /*other*/) {}

  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* values, size_t count) {
    sodium_memzero(values, count * sizeof(T));
    std::allocator<T>().deallocate(values, count);
  }
  bool operator==(const WipingAllocator& /*other*/) const { return true; }
};

using SecretBytes = std::vector<uint8_t, WipingAllocator<uint8_t>>;

// Writes integers, little-endian, and bytes, into memory that is wiped. Not thread-safe.
class ByteWriter {
 public:
  template <std::unsigned_integral Integer>
  void Add(Integer value) {
    for (size_t i = 0; i < sizeof value; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  // A number of bytes that the reader knows.
  void Add(std::span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void AddWithLength(std::span<const uint8_t> bytes) {
    Add(uint64_t{bytes.size()});
    Add(bytes);
  }

  SecretBytes Take() { return std::move(bytes_); }

 private:
  SecretBytes bytes_;
};

// Reads what a ByteWriter wrote, from untrusted bytes: after the first value that is missing all further ones
// are zeros or empty, and IsComplete is false. Not thread-safe.
class ByteReader {
 public:
  // The bytes must outlive it.
  explicit ByteReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <std::unsigned_integral Integer>
  Integer Read() {
    Integer value = 0;
    const std::span<const uint8_t> bytes = Take(sizeof value);
    for (size_t i = 0; i < bytes.size(); ++i)
      value = static_cast<Integer>(value | static_cast<Integer>(Integer{bytes[i]} << (8 * i)));
    return value;
  }
  // Fills `out`.
  void Read(std::span<uint8_t> out) {
    const std::span<const uint8_t> bytes = Take(out.size());
    for (size_t i = 0; i < bytes.size(); ++i) out[i] = bytes[i];
  }
  std::span<const uint8_t> ReadWithLength() { return Take(Read<uint64_t>()); }
  // A number of items that follow, each of at least `bytes_each`: 0 if there can't be so many, so that nobody
  // reserves memory for them.
  size_t ReadCount(size_t bytes_each) {
    const auto count = Read<uint64_t>();
    if (count <= rest_.size() / bytes_each) return count;
    is_whole_ = false;
    return 0;
  }

  size_t left() const { return rest_.size(); }
  // Whether nothing was missing so far.
  bool is_whole() const { return is_whole_; }
  // Whether nothing was missing, and nothing is left.
  bool IsComplete() const { return is_whole_ && rest_.empty(); }

 private:
  std::span<const uint8_t> Take(uint64_t count) {
    if (count > rest_.size() || !is_whole_) {
      is_whole_ = false;
      return {};
    }
    const std::span<const uint8_t> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const uint8_t> rest_;
  bool is_whole_ = true;
};

}  // namespace gpusonde::privacy
