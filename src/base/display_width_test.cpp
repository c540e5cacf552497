// SPDX-License-Identifier: Apache-2.0
#include "base/display_width.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace gpusonde {
namespace {

TEST(DisplayWidth, WideCharactersTakeTwoColumnsAndCombiningMarksNone) {
  EXPECT_EQ(DisplayWidth("train.py"), 8u);
  EXPECT_EQ(DisplayWidth("Größe"), 5u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);
  EXPECT_EQ(DisplayWidth("訓練"), 4u);
  EXPECT_EQ(DisplayWidth("한글"), 4u);
  EXPECT_EQ(DisplayWidth("🎈"), 2u);
  EXPECT_EQ(DisplayWidth("▁▂█ · …"), 7u);
  EXPECT_EQ(DisplayWidth("✓⚡"), 3u);
  EXPECT_EQ(DisplayWidth("\xFF\xFE"), 2u);
}

TEST(DisplayWidth, CutTextFitsAndIsWholeCharacters) {
  const std::string_view text = "train 訓練 e\xCC\x81 🎈 end";
  for (size_t columns = 0; columns < DisplayWidth(text); ++columns) {
    const std::string cut = CutToWidth(text, columns);
    EXPECT_LE(DisplayWidth(cut), columns);
    EXPECT_GE(DisplayWidth(cut) + 1, columns) << "no more is cut than has to be";
    EXPECT_TRUE(IsUtf8(cut)) << columns;
    EXPECT_EQ(cut.ends_with("…"), columns > 0);
  }
  EXPECT_EQ(CutToWidth(text, DisplayWidth(text)), text);
}

}  // namespace
}  // namespace gpusonde
