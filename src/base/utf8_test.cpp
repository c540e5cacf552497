// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpusonde {
namespace {

// The length of each piece in bytes; negative if it is invalid.
std::vector<int> Pieces(std::string_view text) {
  std::vector<int> pieces;
  while (!text.empty()) {
    const Utf8Piece piece = FirstPiece(text);
    pieces.push_back(piece.valid ? static_cast<int>(piece.bytes) : -static_cast<int>(piece.bytes));
    text.remove_prefix(piece.bytes);
  }
  return pieces;
}

TEST(Utf8, CharactersOfEveryLengthAreOnePiece) {
  EXPECT_EQ(Pieces("a\u00e9\u20ac\U0001F600"), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(Pieces("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"), (std::vector{3, 3, 4}));
}

TEST(Utf8, RejectsOverlongFormsSurrogatesAndValuesAboveUnicode) {
  for (const std::string_view text :
       {"\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\x80", "\xFF"})
    EXPECT_FALSE(IsUtf8(text));
}

// The example of Unicode 15, table 3-8.
TEST(Utf8, ABrokenCharacterIsOnePieceUpToItsFirstInvalidByte) {
  EXPECT_EQ(Pieces("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            (std::vector{1, -3, -2, -1, 1, -1, 1, -1, -1, 1}));
}

TEST(Utf8, ATruncatedCharacterIsInvalid) {
  EXPECT_FALSE(IsUtf8("abc\xE2\x82"));
  EXPECT_TRUE(IsUtf8("abc"));
  EXPECT_TRUE(IsUtf8(""));
}

TEST(Utf8, ACodePointIsAppendedAsItsBytes) {
  std::string text;
  for (const uint32_t code_point : {0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu, 0x110000u})
    AppendUtf8(code_point, text);
  EXPECT_EQ(text, "\x7F\u0080\u07FF\u0800\uFFFF\U00010000\U0010FFFF");
  text.clear();
  AppendUtf8(0xD800, text);
  EXPECT_FALSE(IsUtf8(text)) << "a surrogate";
}

TEST(Utf8, APrefixEndsWithAWholeCharacter) {
  const std::string text = "a\u00e9\u20ac\U0001F600z";
  const std::vector<size_t> ends = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t bytes = 0; bytes < ends.size(); ++bytes)
    EXPECT_EQ(Utf8Prefix(text, bytes), text.substr(0, ends[bytes])) << bytes;
  EXPECT_EQ(Utf8Prefix("\xE2\x82z\x80\x80", 2), "\xE2\x82") << "was broken before";
  EXPECT_EQ(Utf8Prefix("\x80\x80\x80\x80\x80", 3), "\x80\x80\x80");
}

TEST(Utf8, ToUtf8KeepsWellFormedTextAndReplacesTheRest) {
  EXPECT_EQ(ToUtf8("a\u00e9\u20ac\U0001F600"), "a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(ToUtf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Utf8, ToUtf8ReplacesATruncatedCharacterOnceAndKeepsTheRest) {
  EXPECT_EQ(ToUtf8("a\xE2\x82z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ToUtf8("a\xF0\x9F\x8E"), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace gpusonde
