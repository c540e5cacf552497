// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(Utf8, WellFormedTextOfEveryLengthStaysAsItIs) {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x8E\x88";  // 1, 2, 3 and 4 bytes
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(ToUtf8(text), text);
}

TEST(Utf8, OverlongFormsSurrogatesAndAboveTheLastCharacterAreReplaced) {
  for (const char* text : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(text));
    EXPECT_TRUE(IsUtf8(ToUtf8(text)));
  }
}

TEST(Utf8, ATornCharacterBecomesOneReplacementAndTheRestIsKept) {
  EXPECT_EQ(ToUtf8("a\xE2\x82z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ToUtf8("a\xF0\x9F\x8E"), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace gpusonde
