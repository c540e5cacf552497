// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusonde {

// Writes JSON (RFC 8259) into a string incrementally, so that a tree of a million nodes never exists as
// objects. It writes the commas; the caller must give every Begin its End and every Key its value.
//
//   JsonWriter json;
//   json.BeginObject().Field("pid", 411).Key("threads").BeginArray();
//   …
//
// Texts may contain any bytes: invalid UTF-8 becomes U+FFFD.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End(']'); }

  JsonWriter& Key(std::string_view key);

  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(std::same_as<bool> auto value) { return Plain(value ? "true" : "false"); }
  JsonWriter& Value(int64_t value);
  JsonWriter& Value(int32_t value) { return Value(int64_t{value}); }
  // The shortest digits that read back as `value`; null unless finite.
  JsonWriter& Value(double value);
  // A value that is JSON already.
  JsonWriter& Raw(std::string_view json) { return Plain(json); }
  template <class T>
  JsonWriter& Value(const std::optional<T>& value) {
    return value.has_value() ? Value(*value) : Plain("null");
  }

  template <class T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }
  // A key with an array of numbers.
  JsonWriter& Column(std::string_view key, std::span<const int32_t> values);
  JsonWriter& Column(std::string_view key, std::span<const int64_t> values);

  std::string Take() { return std::move(out_); }

 private:
  JsonWriter& Begin(char bracket);
  JsonWriter& End(char bracket);
  JsonWriter& Plain(std::string_view value);
  template <class T>
  JsonWriter& Numbers(std::string_view key, std::span<const T> values);
  void Separate();

  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace gpusonde
