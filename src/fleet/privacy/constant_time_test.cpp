// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/constant_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gpusonde::privacy {
namespace {

TEST(ConstantTime, ComparesAsTheOperatorsDo) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const uint64_t numbers[] = {0, 1, 2, kMax / 2, kMax / 2 + 1, kMax - 1, kMax};
  for (const uint64_t a : numbers) {
    for (const uint64_t b : numbers) {
      EXPECT_EQ(MaskLess(a, b), a < b ? kMax : 0) << a << " " << b;
      EXPECT_EQ(MaskEqual(a, b), a == b ? kMax : 0) << a << " " << b;
    }
  }
  EXPECT_EQ(Select(kMax, 3, 4), 3u);
  EXPECT_EQ(Select(0, 3, 4), 4u);
}

TEST(ConstantTime, ArgMaxTakesTheLowestOfEquals) {
  EXPECT_EQ(ArgMax(std::vector<uint32_t>{}), 0u);
  EXPECT_EQ(ArgMax(std::vector<uint32_t>{0, 0, 0}), 0u);
  EXPECT_EQ(ArgMax(std::vector<uint32_t>{1, 7, 3, 7}), 1u);
  EXPECT_EQ(ArgMax(std::vector<uint32_t>{1, 2, std::numeric_limits<uint32_t>::max()}), 2u);
}

TEST(ConstantTime, ARowIsWrittenAtItsPlaceOnly) {
  std::vector<uint32_t> table(6, 99);
  WriteRow(table, 1, std::vector<uint32_t>{5, 6});
  EXPECT_THAT(table, testing::ElementsAre(0, 0, 5, 6, 0, 0));
}

}  // namespace
}  // namespace gpusonde::privacy
