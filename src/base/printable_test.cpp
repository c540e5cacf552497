// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace gpusonde {
namespace {

TEST(Printable, OrdinaryTextIsUnchanged) {
  EXPECT_EQ(Printable("void gemm<float>(int) — Größe 🎈"), "void gemm<float>(int) — Größe 🎈");
}

TEST(Printable, EscapesWhatATerminalInterprets) {
  EXPECT_EQ(Printable("\x1b]0;owned\x07"), "\\x1b]0;owned\\x07");
  EXPECT_EQ(Printable("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");  // CSI as U+009B
  EXPECT_EQ(Printable("\x9B"
                      "31m"),
            "\\x9b31m");  // CSI as one byte, which is not UTF-8
  EXPECT_EQ(Printable("\xE2\x80\xAE"
                      "txt.exe"),
            "\\u202etxt.exe");
}

TEST(Printable, NeverReturnsAControlCharacter) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const char bytes[] = {static_cast<char>(first), static_cast<char>(second), 'x'};
      const std::string safe = Printable({bytes, sizeof bytes});
      ASSERT_TRUE(IsUtf8(safe));
      for (size_t i = 0; i < safe.size(); ++i) {
        const auto c = static_cast<unsigned char>(safe[i]);
        ASSERT_TRUE(c >= 0x20 && c != 0x7F) << first << ' ' << second;
        ASSERT_FALSE(c == 0xC2 && static_cast<unsigned char>(safe[i + 1]) < 0xA0) << first << ' ' << second;
      }
    }
}

TEST(Printable, KeepsTheLinesOfMultiLineText) {
  EXPECT_EQ(PrintableLines("LINE 1: SELEC\n\t^\r\x1b[2J"), "LINE 1: SELEC\n\t^\\x0d\\x1b[2J");
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(Shorten("Größe", 5), "Größe");
  EXPECT_EQ(Shorten("Größe", 4), "Grö…");
  EXPECT_EQ(Shorten("Größe", 1), "…");
  EXPECT_EQ(Shorten("Größe", 0), "");
}

}  // namespace
}  // namespace gpusonde
