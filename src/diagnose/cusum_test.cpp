// SPDX-License-Identifier: Apache-2.0
#include "diagnose/cusum.h"

#include <gtest/gtest.h>

#include <random>

namespace gpusonde::diagnose {
namespace {

TEST(Cusum, BlocksGiveTheSameAsSingleAddends) {
  std::mt19937 random(7);
  std::normal_distribution<double> addends(-0.2, 1);
  for (const int length : {1, 2, 8, 31}) {
    double value = 0, highest = 0;
    BlockwiseCusum blockwise;
    for (int drawn = 0; drawn < 100; ++drawn) {
      CusumBlock block;
      for (int i = 0; i < length; ++i) {
        const double addend = addends(random);
        block.Add(addend);
        value = Grow(value, addend);
        highest = std::max(highest, value);
      }
      blockwise.Add(block);
      EXPECT_NEAR(blockwise.value, value, 1e-9) << length;
      EXPECT_NEAR(blockwise.highest, highest, 1e-9) << length;
    }
    EXPECT_GT(highest, 0);
  }
}

TEST(Cusum, NeverFallsBelowZero) {
  CusumBlock block;
  block.Add(-3);
  block.Add(-1);
  BlockwiseCusum cusum;
  cusum.Add(block);
  EXPECT_EQ(cusum.value, 0);
  EXPECT_EQ(cusum.highest, 0);
}

}  // namespace
}  // namespace gpusonde::diagnose
