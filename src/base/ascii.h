// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gpusonde {

// Kinds of characters in ASCII, whatever the locale. Bytes of other UTF-8 characters are neither.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

inline std::string ToLower(std::string text) {
  std::ranges::transform(text, text.begin(), Lower);
  return text;
}
inline std::string ToUpper(std::string text) {
  std::ranges::transform(text, text.begin(), Upper);
  return text;
}

// What a hexadecimal digit of either case stands for; -1 for another character.
constexpr int HexDigit(char c) {
  const char lower = Lower(c);
  return IsDigit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Whether two texts differ in the case of ASCII letters at most, as HTTP compares names.
constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

}  // namespace gpusonde
