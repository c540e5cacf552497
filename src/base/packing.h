// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusonde {

// Serialises plain values and arrays for another process of this program, in native byte order and untyped.
class Packer {
 public:
  template <class T>
  void Value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void Array(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Value(uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void Text(std::string_view text) { Array(std::span(text)); }

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Deserialises what a Packer in an untrusted process wrote. After the first value that is missing, all
// further values are empty and Complete() is false. Every bit pattern must be a valid T, so T can't be bool
// or an enum that is switched over.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof value) return Fail(), value;
    rest_.copy(reinterpret_cast<char*>(&value), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> Array() {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = Value<uint64_t>();
    if (count > rest_.size() / sizeof(T)) return Fail(), std::vector<T>();
    std::vector<T> values(count);
    rest_.copy(reinterpret_cast<char*>(values.data()), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
    return values;
  }
  std::string Text() {
    const std::vector<char> text = Array<char>();
    return {text.begin(), text.end()};
  }

  // Whether no value was missing and no bytes are left.
  bool Complete() const { return !failed_ && rest_.empty(); }

 private:
  void Fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace gpusonde
