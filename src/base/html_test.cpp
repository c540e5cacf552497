// SPDX-License-Identifier: Apache-2.0
#include "base/html.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(EscapedHtml, LeavesNoMarkupQuoteOrControlCharacter) {
  EXPECT_EQ(EscapedHtml("a<b>&\"'\n\xff"), "a&lt;b&gt;&amp;&quot;&#39;\\x0a\\xff");
}

TEST(SentenceHtml, KeepsNumbersAndUnitsTogetherAndEscapesTheRest) {
  EXPECT_EQ(SentenceHtml("5 % of <2 ms>, 3 µs, 1 GB/s"),
            "5\u202f% of &lt;2\u202fms&gt;, 3\u202fµs, 1\u202fGB/s");
  EXPECT_EQ(SentenceHtml("2 steps, 4 minutes, rank 3 has 5 Bytes"), "2 steps, 4 minutes, rank 3 has 5 Bytes");
  EXPECT_EQ(SentenceHtml(""), "");
}

}  // namespace
}  // namespace gpusonde
