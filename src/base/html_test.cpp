// SPDX-License-Identifier: Apache-2.0
#include "base/html.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(EscapedHtml, LeavesNoMarkupQuoteOrControlCharacter) {
  EXPECT_EQ(EscapedHtml("a<b>&\"'\n\xff"), "a&lt;b&gt;&amp;&quot;&#39;\\x0a\\xff");
}

}  // namespace
}  // namespace gpusonde
