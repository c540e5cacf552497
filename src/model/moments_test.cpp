// SPDX-License-Identifier: Apache-2.0
#include "model/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gpusonde::model {
namespace {

Moments MomentsOf(const std::vector<int64_t>& values) {
  Moments moments;
  for (const int64_t value : values) moments.Add(value);
  return moments;
}

TEST(Moments, AreThoseOfTheNumbers) {
  const Moments moments = MomentsOf({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(moments.count(), 8);
  EXPECT_EQ(moments.total(), 40);
  EXPECT_EQ(moments.min(), 2);
  EXPECT_EQ(moments.max(), 9);
  EXPECT_EQ(moments.Mean(), 5);
  EXPECT_TRUE(moments.SquaredDeviations() == 32);
  EXPECT_EQ(moments.StandardDeviation(), 2);  // sqrt(32 / 7) = 2.14
}

TEST(Moments, RoundToTheNearest) {
  EXPECT_EQ(MomentsOf({1, 2}).Mean(), 2);               // 1.5
  EXPECT_EQ(MomentsOf({1, 1, 2}).Mean(), 1);            // 1.33
  EXPECT_EQ(MomentsOf({-1, -2}).Mean(), -1);            // −1.5: halves go up
  EXPECT_EQ(MomentsOf({0, 2}).StandardDeviation(), 1);  // 1.41
  EXPECT_EQ(MomentsOf({0, 3}).StandardDeviation(), 2);  // 2.12
  EXPECT_EQ(MomentsOf({0, 4}).StandardDeviation(), 3);  // 2.83
}

TEST(Moments, OfNothingAndOfOneAreZero) {
  EXPECT_EQ(Moments().Mean(), 0);
  EXPECT_EQ(Moments().StandardDeviation(), 0);
  EXPECT_EQ(Moments().min(), 0);
  EXPECT_EQ(Moments().max(), 0);
  EXPECT_EQ(MomentsOf({1'000'000}).StandardDeviation(), 0);
}

// Where doubles lose everything: a large mean and a small spread.
TEST(Moments, KeepSmallSpreadsOfLargeNumbers) {
  constexpr int64_t kHour = 3'600'000'000'000;
  EXPECT_EQ(MomentsOf({kHour, kHour + 2, kHour + 4}).StandardDeviation(), 2);
  EXPECT_EQ(MomentsOf({kHour, kHour + 2, kHour + 4}).Mean(), kHour + 2);
}

TEST(Moments, AgreeWithFloatingPointOnRandomNumbers) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> values(2 + random() % 50);
    for (int64_t& value : values) value = static_cast<int64_t>(random() % 1'000'000) - 1000;
    long double mean = 0;
    for (const int64_t value : values) mean += static_cast<long double>(value);
    mean /= static_cast<long double>(values.size());
    long double squares = 0;
    for (const int64_t value : values)
      squares += (static_cast<long double>(value) - mean) * (static_cast<long double>(value) - mean);
    const long double deviation = std::sqrt(squares / static_cast<long double>(values.size() - 1));
    EXPECT_EQ(MomentsOf(values).Mean(), std::llround(std::floor(mean + 0.5L)));
    EXPECT_EQ(MomentsOf(values).StandardDeviation(), std::llround(deviation));
  }
}

TEST(Moments, MergingIsTheSameInAnyOrderAndGrouping) {
  std::mt19937_64 random(5);
  std::vector<int64_t> values(1000);
  for (int64_t& value : values) value = static_cast<int64_t>(random() >> 12);
  const Moments whole = MomentsOf(values);
  for (const size_t parts : {1u, 2u, 3u, 8u}) {
    std::vector<Moments> each(parts);
    for (size_t i = 0; i < values.size(); ++i) each[i % parts].Add(values[i]);
    Moments merged;
    for (size_t i = parts; i-- > 0;) merged.Merge(each[i]);
    EXPECT_TRUE(merged == whole) << parts;
  }
}

TEST(Moments, OfNumbersTooLargeDoNotWrap) {
  const Moments moments = MomentsOf(std::vector<int64_t>(8, std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(moments.total(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(moments.Mean(), std::numeric_limits<int64_t>::max());
  EXPECT_GE(moments.StandardDeviation(), 0);
  // Near the limit of exactness: 2^61 and 3 · 2^61 deviate by sqrt(2) · 2^61.
  const double deviation =
      static_cast<double>(MomentsOf({int64_t{1} << 61, int64_t{3} << 61}).StandardDeviation());
  EXPECT_NEAR(deviation / std::ldexp(std::sqrt(2.0), 61), 1, 1e-6);
}

}  // namespace
}  // namespace gpusonde::model
