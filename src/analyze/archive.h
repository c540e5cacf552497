// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/int128.h"

// States and results as bytes, for files of --part and messages between processes. What is archived has a
// member
//
//   template <class Archive> void Transfer(Archive& archive) { archive(first_); archive(second_); }
//
// which serves both ways; Archive::kReads says which. Bytes are in the machine's own order: parts are merged
// where they were made.
namespace gpusonde::analyze {

template <class T>
concept Scalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;

class ArchiveWriter {
 public:
  static constexpr bool kReads = false;

  template <Scalar T>
  void operator()(const T& value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
    requires(!Scalar<T>)
  void operator()(T& value) {
    value.Transfer(*this);
  }
  void operator()(std::string& text) {
    (*this)(uint64_t{text.size()});
    out_ += text;
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    (*this)(uint64_t{values.size()});
    for (T& value : values) (*this)(value);
  }
  template <class Key, class Value>
  void operator()(std::map<Key, Value>& values) {
    (*this)(uint64_t{values.size()});
    for (auto& [key, value] : values) {
      Key copy = key;
      (*this)(copy);
      (*this)(value);
    }
  }
  template <Scalar T>
  void operator()(std::optional<T>& value) {
    (*this)(value.has_value());
    (*this)(value.value_or(T{}));
  }
  // Only readers can find fault.
  void Require(bool /*condition*/, std::string_view /*what*/ = {}) {}

  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads untrusted bytes: after the first error, ok() stays false and all values are zero.
class ArchiveReader {
 public:
  static constexpr bool kReads = true;

  explicit ArchiveReader(std::string_view in) : in_(in) {}

  void operator()(bool& value) {
    uint8_t byte = 0;
    (*this)(byte);
    Require(byte <= 1);
    value = byte == 1;
  }
  template <Scalar T>
    requires(!std::is_same_v<T, bool>)
  void operator()(T& value) {
    value = T{};
    if (in_.size() < sizeof value) return Require(false);
    in_.copy(reinterpret_cast<char*>(&value), sizeof value);
    in_.remove_prefix(sizeof value);
  }
  template <class T>
    requires(!Scalar<T>)
  void operator()(T& value) {
    value.Transfer(*this);
  }
  void operator()(std::string& text) {
    const size_t size = Size();
    text = in_.substr(0, size);
    in_.remove_prefix(size);
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    values.clear();
    for (size_t left = Size(); left > 0 && ok_; --left) (*this)(values.emplace_back());
  }
  template <class Key, class Value>
  void operator()(std::map<Key, Value>& values) {
    values.clear();
    for (size_t left = Size(); left > 0 && ok_; --left) {
      Key key{};
      (*this)(key);
      (*this)(values[key]);
    }
  }
  template <Scalar T>
  void operator()(std::optional<T>& value) {
    bool has_value = false;
    T found{};
    (*this)(has_value);
    (*this)(found);
    value = has_value ? std::optional<T>(found) : std::nullopt;
  }
  // `what` names the value that must be so, for the error; it outlives the archive.
  void Require(bool condition, std::string_view what = {}) {
    if (condition) return;
    if (ok_) fault_ = what;
    ok_ = false;
    in_ = {};
  }

  bool ok() const { return ok_; }
  // The value that is impossible; empty if that isn't known.
  std::string_view fault() const { return fault_; }
  std::string_view rest() const { return in_; }

 private:
  // Of something whose elements have at least a byte each.
  size_t Size() {
    uint64_t size = 0;
    (*this)(size);
    Require(size <= in_.size());
    return ok_ ? static_cast<size_t>(size) : 0;
  }

  std::string_view in_;
  std::string_view fault_;
  bool ok_ = true;
};

}  // namespace gpusonde::analyze
