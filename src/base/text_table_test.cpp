// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/display_width.h"

namespace gpusonde {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TextColumn> Pets() {
  return {{.title = "PID", .cells = {"7", "12345"}, .right = true},
          {.title = "MEMORY", .cells = {"1.0 GiB", "100 MiB"}, .right = true, .leave_out = 2},
          {.title = "COMMAND",
           .cells = {"cat", "a long command"},
           .leave_out = 1,
           .min_width = 8,
           .max_width = 99}};
}

TEST(TextTable, AlignsColumns) {
  EXPECT_THAT(LayOutTable(Pets(), 0), ElementsAre("  PID   MEMORY  COMMAND",  //
                                                  "    7  1.0 GiB  cat",      //
                                                  "12345  100 MiB  a long command"));
}

TEST(TextTable, TextIsCutBeforeAColumnOfNumbersIsLeftOut) {
  EXPECT_THAT(LayOutTable(Pets(), 24), ElementsAre("  PID  MEMORY COMMAND",  //
                                                   "    7 1.0 GiB cat",      //
                                                   "12345 100 MiB a long co…"));
  EXPECT_THAT(LayOutTable(Pets(), 20), ElementsAre("  PID COMMAND", "    7 cat", "12345 a long command"));
  EXPECT_THAT(LayOutTable(Pets(), 13), ElementsAre("  PID", "    7", "12345"));
  EXPECT_THAT(LayOutTable(Pets(), 4), IsEmpty());
}

TEST(TextTable, NoLineIsWiderThanTheTable) {
  std::vector<TextColumn> columns = Pets();
  columns[2].cells[1] = "訓練 訓練 訓練 🎈🎈🎈 e\xCC\x81 e\xCC\x81";
  for (size_t width = 1; width < 60; ++width)
    for (const std::string& line : LayOutTable(columns, width)) EXPECT_LE(DisplayWidth(line), width) << line;
}

TEST(TextTable, EmptyColumnsAreLeftOutAndDrawnOnesGetTheRest) {
  std::vector<TextColumn> columns = Pets();
  columns[1].cells = {"", ""};
  columns[2] = {.title = "BAR",
                .cells = {"", ""},
                .min_width = 4,
                .max_width = 30,
                .draw = [](size_t row, size_t width) { return std::string(width, row == 0 ? 'x' : 'y'); }};
  EXPECT_THAT(LayOutTable(columns, 16), ElementsAre("  PID BAR", "    7 xxxxxxxxxx", "12345 yyyyyyyyyy"));
}

}  // namespace
}  // namespace gpusonde
