// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/brackets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace gpusonde::importers::kineto {
namespace {

struct Ends {
  std::vector<uint32_t> elements;
  size_t array = 0;
};

// The same, a byte at a time, from behind the array's '['.
Ends Expected(const std::string& text) {
  Ends ends;
  int64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  for (size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    const bool counts = !escaped;
    escaped = c == '\\' && counts;
    if (c == '"' && counts) in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c != ']' && c != '}') continue;
    if (--depth == 0) ends.elements.push_back(static_cast<uint32_t>(i + 1));
    if (depth < 0) {
      ends.array = i;
      return ends;
    }
  }
  return ends;
}

class Brackets : public testing::TestWithParam<bool> {};

TEST_P(Brackets, EndsAreThoseOfReadingByteByByteHoweverTheTextArrives) {
  if (GetParam() && !BracketScanner::HasAvx2()) GTEST_SKIP() << "no AVX2 here";
  std::mt19937 random(5);
  // Mostly blanks, so that elements cross blocks; backslashes come in rows.
  constexpr std::string_view kBytes = "        \n{}[]{}\"\"\\\\,:7x";
  size_t ended = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = "[";
    for (const size_t size = 2 + random() % 700; text.size() < size;)
      text += kBytes[random() % kBytes.size()];
    BracketScanner scanner(GetParam());
    size_t scanned = 1;
    for (size_t have = 1; have < text.size() && scanner.array_end() == 0;) {
      have = std::min(text.size(), have + random() % 300);
      scanned = scanner.Scan(std::string_view(text).substr(0, have), scanned, have == text.size());
    }
    const Ends expected = Expected(text);
    ASSERT_EQ(scanner.last_end(), expected.elements.empty() ? 0 : expected.elements.back()) << text;
    ASSERT_EQ(scanner.array_end(), expected.array) << text;
    std::vector<uint32_t> ends;
    scanner.TakeEnds(ends);
    ASSERT_EQ(ends, expected.elements) << text;
    ended += expected.array > 0 ? 1 : 0;
  }
  EXPECT_GT(ended, 100u);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAvx2, Brackets, testing::Bool());

}  // namespace
}  // namespace gpusonde::importers::kineto
