// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(ShellWord, IsTheTextItselfWhereAShellReadsItSo) {
  EXPECT_EQ(ShellWord("runs/2026-11-26_a.sonde"), "runs/2026-11-26_a.sonde");
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadMore) {
  EXPECT_EQ(ShellWord("my run.sonde"), "'my run.sonde'");
  EXPECT_EQ(ShellWord("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("~/läufe"), "'~/läufe'");
}

}  // namespace
}  // namespace gpusonde
