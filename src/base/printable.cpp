// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace gpusonde {
namespace {

bool IsControl(uint32_t code_point) { return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0); }

// Line separators and direction marks, with which a name can look like another name or like our own output.
bool Rearranges(uint32_t code_point) {
  return code_point == 0x061C || code_point == 0x200E || code_point == 0x200F ||
         (code_point >= 0x2028 && code_point <= 0x202E) || (code_point >= 0x2066 && code_point <= 0x2069);
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string Escape(std::string_view text, std::string_view kept) {
  std::string safe;
  safe.reserve(text.size());
  const auto out = std::back_inserter(safe);
  while (!text.empty()) {
    const Utf8Piece piece = FirstPiece(text);
    const std::string_view bytes = text.substr(0, piece.bytes);
    text.remove_prefix(piece.bytes);
    if (!piece.valid) {
      for (const char c : bytes) fmt::format_to(out, "\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    const uint32_t code_point = CodePoint(bytes);
    if (IsControl(code_point) && kept.find(bytes) == std::string_view::npos)
      fmt::format_to(out, "\\x{:02x}", code_point);
    else if (Rearranges(code_point))
      fmt::format_to(out, "\\u{:04x}", code_point);
    else
      safe += bytes;
  }
  return safe;
}

}  // namespace

std::string Printable(std::string_view text) { return Escape(text, ""); }

std::string PrintableLines(std::string_view text) { return Escape(text, "\n\t"); }

std::string Shorten(std::string_view text, size_t max_characters) {
  if (CountCharacters(text) <= max_characters) return std::string(text);
  if (max_characters == 0) return "";
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end)
    if (!IsContinuation(text[end]) && ++characters == max_characters) break;
  return std::string(text.substr(0, end)) + "…";
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return !IsContinuation(c); }));
}

}  // namespace gpusonde
