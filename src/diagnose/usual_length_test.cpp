// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "base/testing/units.h"

namespace gpusonde::diagnose {
namespace {

// Steps every 10 ms with 10, 20, 30, … 100 kernels in turn.
UsualLength Learn(const std::function<double(int64_t work)>& length_ns, int64_t steps = 200) {
  UsualLength usual;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t work = 10 * (i % 10 + 1);
    usual.Add({.end_ns = 10 * i * kMs, .length_ns = length_ns(work), .work = work});
  }
  return usual;
}

TEST(UsualLength, GrowsWithTheWorkWhereItDoes) {
  const UsualLength usual =
      Learn([](int64_t work) { return 2 * kMs + 0.1 * kMs * static_cast<double>(work); });
  EXPECT_NEAR(usual.MeanNs(10), 3 * kMs, 0.05 * kMs);
  EXPECT_NEAR(usual.MeanNs(100), 12 * kMs, 0.05 * kMs);
  EXPECT_NEAR(usual.MeanNs(1'000), 102 * kMs, 2 * kMs) << "more than ever";
  EXPECT_NEAR(usual.MedianLog(50), std::log(7 * kMs), 0.02);
  EXPECT_NEAR(usual.mean_ns(), 7.5 * kMs, 0.5 * kMs);
}

TEST(UsualLength, IsTheSameForAllWhereTheWorkSaysNothing) {
  int step = 0;
  const UsualLength usual = Learn([&](int64_t) { return (5 + step++ * 7 % 13) * kMs; });
  EXPECT_EQ(usual.MeanNs(10), usual.mean_ns());
  EXPECT_EQ(usual.MeanNs(1'000), usual.mean_ns());
}

TEST(UsualLength, IsTheSameForAllWhileThereAreFewSteps) {
  const UsualLength usual = Learn([](int64_t work) { return 0.1 * kMs * static_cast<double>(work); }, 10);
  EXPECT_EQ(usual.MeanNs(10), usual.MeanNs(100));
}

// A step with a single kernel, and one with none, are nothing special.
TEST(UsualLength, OfNoWorkIsThatOfTheLeast) {
  const UsualLength usual = Learn([](int64_t work) { return 0.1 * kMs * static_cast<double>(work); });
  EXPECT_GT(usual.MeanNs(0), 0);
  EXPECT_EQ(usual.MeanNs(0), usual.MeanNs(1));
}

}  // namespace
}  // namespace gpusonde::diagnose
