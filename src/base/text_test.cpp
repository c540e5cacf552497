// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace gpusonde {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(TakeLine(text));
  return lines;
}

TEST(Text, LinesEndAtLineFeedsAndTheLastNeedsNone) {
  EXPECT_THAT(LinesOf("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(LinesOf("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(LinesOf("\n\na"), ElementsAre("", "", "a"));
  EXPECT_THAT(LinesOf("a\r\n\r"), ElementsAre("a\r", "\r"));
  EXPECT_THAT(LinesOf(std::string_view("a\0\nb", 4)), ElementsAre(std::string_view("a\0", 2), "b"));
  EXPECT_THAT(LinesOf(""), ElementsAre());
  std::string_view nothing;
  EXPECT_EQ(TakeLine(nothing), "");
  EXPECT_EQ(nothing, "");
}

TEST(Text, WordsAreTakenFromTheFront) {
  std::string_view text = "  one two\t  three ";
  EXPECT_EQ(TakeWord(text), "one");
  EXPECT_EQ(text, " two\t  three ");
  EXPECT_EQ(TakeWord(text), "two\t");
  EXPECT_EQ(TakeWord(text), "three");
  EXPECT_EQ(TakeWord(text), "");
  EXPECT_EQ(text, "");
  text = "::a b:c";
  EXPECT_EQ(TakeWord(text, ':'), "a b");
  EXPECT_EQ(text, ":c");
}

TEST(Text, TrimmingRemovesTheseBlanksFromTheEndsOnly) {
  EXPECT_EQ(Trimmed(" \ta b\t ", " \t"), "a b");
  EXPECT_EQ(Trimmed("a\r", " \t"), "a\r");
  EXPECT_EQ(Trimmed("a\r", " \t\r"), "a");
  EXPECT_EQ(Trimmed(" \t ", " \t"), "");
  EXPECT_EQ(Trimmed("", " \t"), "");
  EXPECT_EQ(Trimmed("a", ""), "a");
}

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(ParseNumber<int32_t>("-12"), -12);
  EXPECT_EQ(ParseNumber<int32_t>("0012"), 12);
  EXPECT_EQ(ParseNumber<uint64_t>("ffff", 16), 65'535U);
  EXPECT_EQ(ParseNumber<double>("2.5e3"), 2500.0);
  for (const char* text : {"", " ", "-", "+1", " 1", "1 ", "1\n", "1.5", "1x", "x1", "0x1", "--1"})
    EXPECT_EQ(ParseNumber<int32_t>(text), std::nullopt) << text;
  for (const char* text : {"", "1,5", "1.5 ", " 1.5", "+1", "1e", "."})
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  EXPECT_EQ(ParseNumber<int32_t>(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(ParseNumber<int32_t>(std::string_view("123").substr(0, 2)), 12);
}

TEST(Text, ANumberOutOfItsTypesRangeIsNone) {
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseNumber<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint16_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e400"), std::nullopt);
}

TEST(Text, BytesAreTwoHexDigitsEach) {
  EXPECT_EQ(ToHex(std::array<uint8_t, 4>{0x00, 0x0f, 0xa0, 0xff}), "000fa0ff");
  EXPECT_EQ(ToHex({}), "");
}

}  // namespace
}  // namespace gpusonde
