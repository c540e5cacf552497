// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpusonde {
namespace {

TEST(Terminal, APipeHasNeitherColourNorWidth) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Terminal terminal = Terminal::Of(ends[1]);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(terminal.colour);
  EXPECT_EQ(terminal.width, 0u);
  EXPECT_EQ(terminal.Paint(Style::kRed, "hot"), "hot");
}

TEST(Wrap, BreaksAtSpacesAndIndentsContinuationLines) {
  EXPECT_EQ(Wrap("self      one two three\n", 16, 10), "self      one\n          two\n          three\n");
  EXPECT_EQ(Wrap("a bb ccc\nd", 5, 2), "a bb\n  ccc\nd");
}

TEST(Wrap, KeepsWordsAndSpacing) {
  EXPECT_EQ(Wrap("  /a/very/long/path  x", 8, 2), "  /a/very/long/path\n  x");
  EXPECT_EQ(Wrap("as  it   is", 0, 2), "as  it   is");
  EXPECT_EQ(Wrap("ä ö ü", 5, 0), "ä ö ü");
}

}  // namespace
}  // namespace gpusonde
