// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/utf8.h"

#include <cstdint>
#include <cstring>

namespace gpusonde::store::duckdb {
namespace {

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Length of the character that the text begins with; 0 when it begins with none. By the table of RFC 3629,
// section 4: the second byte's range depends on the first.
size_t CharacterLength(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!IsContinuation(text[i])) return 0;
  const auto second = static_cast<uint8_t>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

// How many bytes from the start are ASCII, eight at a time.
size_t AsciiPrefix(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080) != 0) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (true) {
    text.remove_prefix(AsciiPrefix(text));
    if (text.empty()) return true;
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      valid += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return valid;
}

}  // namespace gpusonde::store::duckdb
