// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

// U+FFFD, shown in place of bytes that are no character.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The first piece of a text: a character, or bytes that begin none and stand for one U+FFFD.
struct Utf8Piece {
  size_t bytes = 0;
  bool valid = false;
};

// `text` must not be empty. Well-formed as in RFC 3629 (no overlong forms, no surrogates, nothing above
// U+10FFFF); of what is not, the longest beginning of a character is one piece (Unicode 15, section 3.9,
// "substitution of maximal subparts"), as browsers do it.
Utf8Piece FirstPiece(std::string_view text);

bool IsUtf8(std::string_view text);

// Whether a valid character is one of the C1 control characters, U+0080 to U+009F. Terminals act on them.
bool IsC1(std::string_view character);

// The text with every piece that is no character replaced by U+FFFD. Names of threads, files and functions
// come from other programs and may be any bytes; JSON and protobuf take UTF-8 only.
std::string ToUtf8(std::string_view text);

}  // namespace gpusonde
