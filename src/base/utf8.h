// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde {

// U+FFFD, the replacement for invalid bytes.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The first piece of a text: a character, or invalid bytes that are replaced by one U+FFFD.
struct Utf8Piece {
  size_t bytes = 0;
  bool valid = false;
};

// `text` must not be empty. Characters are well-formed as in RFC 3629 (no overlong forms, no surrogates,
// nothing above U+10FFFF); otherwise the longest prefix of a character is one piece (Unicode 15, section 3.9,
// "substitution of maximal subparts"), as in browsers.
Utf8Piece FirstPiece(std::string_view text);

bool IsUtf8(std::string_view text);

// The longest beginning of at most so many bytes that ends with a whole character where the text's character
// there is valid.
std::string_view Utf8Prefix(std::string_view text, size_t max_bytes);

// Of one valid character.
uint32_t CodePoint(std::string_view character);

// Appends the bytes of a code point; nothing of a number above U+10FFFF. A surrogate's are no valid UTF-8.
void AppendUtf8(uint32_t code_point, std::string& text);

// Whether a valid character is a C1 control character, U+0080 to U+009F, which terminals interpret.
bool IsC1(std::string_view character);

// Replaces every invalid piece by U+FFFD. Names of threads, files and functions come from other programs and
// may be any bytes; JSON and protobuf require UTF-8.
std::string ToUtf8(std::string_view text);

}  // namespace gpusonde
