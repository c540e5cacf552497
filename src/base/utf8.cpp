// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace gpusonde {
namespace {

// A lead byte: how many bytes follow, and the bounds of the first of these (RFC 3629, section 4).
struct Lead {
  size_t followers = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0xC2 || byte > 0xF4) return {};
  if (byte < 0xE0) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};  // below would be overlong
  if (byte == 0xED) return {2, 0x80, 0x9F};  // above are surrogates
  if (byte < 0xF0) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {3};
}

}  // namespace

Utf8Piece FirstPiece(std::string_view text) {
  const auto byte_at = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte_at(0) < 0x80) return {1, true};
  Lead lead = LeadOf(byte_at(0));
  if (lead.followers == 0) return {1, false};
  for (size_t i = 1; i <= lead.followers; ++i) {
    if (i == text.size() || byte_at(i) < lead.low || byte_at(i) > lead.high) return {i, false};
    lead.low = 0x80;
    lead.high = 0xBF;
  }
  return {lead.followers + 1, true};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Piece piece = FirstPiece(text);
    if (!piece.valid) return false;
    text.remove_prefix(piece.bytes);
  }
  return true;
}

std::string_view Utf8Prefix(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  // A character has at most four bytes, so that one which is cut begins in the last three.
  for (size_t begin = max_bytes - std::min<size_t>(max_bytes, 3); begin < max_bytes; ++begin) {
    const Utf8Piece piece = FirstPiece(text.substr(begin));
    if (piece.valid && begin + piece.bytes > max_bytes) return text.substr(0, begin);
  }
  return text.substr(0, max_bytes);
}

uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  uint32_t code_point = first & (0xFFu >> (character.size() + 1));
  for (const char c : character.substr(1))
    code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code_point;
}

void AppendUtf8(uint32_t code_point, std::string& text) {
  const auto put = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  const auto put_tail = [&](int shift) { put(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_tail(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_tail(6);
    put_tail(0);
  } else if (code_point < 0x110000) {
    put(0xF0 | code_point >> 18);
    put_tail(12);
    put_tail(6);
    put_tail(0);
  }
}

bool IsC1(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string ToUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Piece piece = FirstPiece(text);
    result += piece.valid ? text.substr(0, piece.bytes) : kReplacement;
    text.remove_prefix(piece.bytes);
  }
  return result;
}

}  // namespace gpusonde
