// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace gpusonde {

// Removes the first line of a text, with its line feed, and returns it without; the last one may have none. A
// carriage return is part of the line.
constexpr std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Removes the first word of a text, with the separators before it, and returns it; empty at the end.
constexpr std::string_view TakeWord(std::string_view& text, char separator = ' ') {
  text.remove_prefix(std::min(text.find_first_not_of(separator), text.size()));
  const std::string_view word = text.substr(0, text.find(separator));
  text.remove_prefix(word.size());
  return word;
}

// The text without the blanks at both its ends.
constexpr std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The number that the whole text is, as std::from_chars reads it: no blanks, no '+', no 0x, '-' only for
// signed types; of floating point also inf and nan. Nothing for any other text, and for what is out of the
// type's range.
template <std::integral T>
std::optional<T> ParseNumber(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}
template <std::floating_point T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Two lower-case digits for each byte.
inline std::string ToHex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) hex.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return hex;
}

}  // namespace gpusonde
