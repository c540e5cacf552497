// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde {

// Kinds of characters in ASCII, whatever the locale. Bytes of other UTF-8 characters are neither.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace gpusonde
