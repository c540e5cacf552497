// SPDX-License-Identifier: Apache-2.0
#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde {
namespace {

std::string Nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(JsonDepth, CountsLevels) {
  EXPECT_FALSE(IsTooDeep(""));
  EXPECT_FALSE(IsTooDeep(Nested(kMaxJsonDepth)));
  EXPECT_TRUE(IsTooDeep(Nested(kMaxJsonDepth + 1)));
  EXPECT_TRUE(IsTooDeep(R"({"a":)" + Nested(kMaxJsonDepth) + "}"));
  // One after the other.
  EXPECT_FALSE(IsTooDeep("[" + Nested(kMaxJsonDepth - 1) + "," + Nested(kMaxJsonDepth - 1) + "]"));
}

TEST(JsonDepth, LeavesOutBracketsInTexts) {
  const std::string brackets(2 * kMaxJsonDepth, '[');
  EXPECT_FALSE(IsTooDeep(R"(["a\"\\)" + brackets + R"("])"));
  EXPECT_TRUE(IsTooDeep(R"(["a\\",)" + brackets));
  EXPECT_FALSE(IsTooDeep(R"("\)"));  // cut off
}

TEST(JsonDepth, TooManyEndsHideNothing) {
  EXPECT_TRUE(IsTooDeep(std::string(3, ']') + std::string(kMaxJsonDepth + 1, '[')));
}

}  // namespace
}  // namespace gpusonde
