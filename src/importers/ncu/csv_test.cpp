// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::importers::ncu {
namespace {

using ::testing::ElementsAre;

TEST(RowLength, TakesLineBreaksInQuotesAsPartOfTheRow) {
  EXPECT_EQ(RowLength("\"a\",\"b\"\n\"c\"\n"), 8u);
  EXPECT_EQ(RowLength("\"a\nb\",c\nd"), 8u);
  EXPECT_EQ(RowLength("\"a\"\"\n\"\n"), 7u);
  EXPECT_EQ(RowLength("\"a"), std::nullopt);
  EXPECT_EQ(RowLength(""), std::nullopt);
}

TEST(RowLength, EndsAMessageWithItsLineWhateverQuotesAreInIt) {
  EXPECT_EQ(RowLength("==PROF== it's a \"quote\nrest"), 23u);
}

TEST(RowParser, UnquotesCells) {
  RowParser parser;
  EXPECT_THAT(parser.Parse("\"0\",\"a, b\",\"say \"\"x\"\"\",plain,\r\n"),
              ElementsAre("0", "a, b", "say \"x\"", "plain", ""));
  EXPECT_THAT(parser.Parse(""), ElementsAre(""));
  EXPECT_THAT(parser.Parse("\"open"), ElementsAre("open"));
  EXPECT_THAT(parser.Parse("\"a\"b,c"), ElementsAre("a", "c"));
}

TEST(ReadColumns, TellsTheLongFormFromTheWide) {
  const auto long_form =
      ReadColumns({"ID", "Process ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"});
  ASSERT_TRUE(long_form.has_value());
  EXPECT_TRUE(long_form->is_long());
  EXPECT_EQ(long_form->value, 5u);
  const auto wide =
      ReadColumns({"ID", "Kernel Name", "CC", "dram__bytes.sum", "device__attribute_display_name", ""});
  ASSERT_TRUE(wide.has_value());
  EXPECT_FALSE(wide->is_long());
  EXPECT_THAT(wide->metrics, ElementsAre(std::pair<size_t, std::string>(3, "dram__bytes.sum")));
  EXPECT_FALSE(ReadColumns({"ID", "Name"}).has_value());
}

}  // namespace
}  // namespace gpusonde::importers::ncu
