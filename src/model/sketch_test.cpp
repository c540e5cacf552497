// SPDX-License-Identifier: Apache-2.0
#include "model/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace gpusonde::model {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

std::vector<int64_t> RandomDurations(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = static_cast<int64_t>(random() >> (1 + random() % 62));
  return values;
}

Sketch SketchOf(const std::vector<int64_t>& values) {
  Sketch sketch;
  for (const int64_t value : values) sketch.Add(value);
  return sketch;
}

TEST(Sketch, BucketsFollowEachOtherWithoutGaps) {
  for (uint32_t bucket = 0; bucket + 1 < Sketch::kBuckets; ++bucket) {
    EXPECT_EQ(Sketch::BucketOf(Sketch::LowestOf(bucket)), bucket);
    EXPECT_EQ(Sketch::BucketOf(Sketch::LowestOf(bucket + 1) - 1), bucket);
    EXPECT_EQ(Sketch::BucketOf(Sketch::MiddleOf(bucket)), bucket);
  }
  EXPECT_EQ(Sketch::BucketOf(kLargest), Sketch::kBuckets - 1);
  EXPECT_EQ(Sketch::BucketOf(-1), 0u);
}

TEST(Sketch, ANumberIsWithinEightPerMilleOfItsBucketsMiddle) {
  for (const int64_t value : RandomDurations(100'000, 1)) {
    const double middle = static_cast<double>(Sketch::MiddleOf(Sketch::BucketOf(value)));
    EXPECT_LE(std::abs(middle - static_cast<double>(value)), 0.008 * static_cast<double>(value)) << value;
  }
}

TEST(Sketch, QuantilesAreThoseOfTheLowerRank) {
  std::vector<int64_t> values = RandomDurations(1001, 2);
  const Sketch sketch = SketchOf(values);
  std::ranges::sort(values);
  for (const uint32_t percent : {0u, 1u, 25u, 50u, 75u, 90u, 99u, 100u}) {
    const int64_t exact = values[1000 * percent / 100];
    EXPECT_EQ(Sketch::BucketOf(sketch.Quantile(percent, 100)), Sketch::BucketOf(exact)) << percent;
  }
  EXPECT_EQ(SketchOf({10, 20}).Quantile(1, 2), 10);
  EXPECT_EQ(Sketch().Quantile(1, 2), 0);
}

TEST(Sketch, MergingIsTheSameInAnyOrderAndGrouping) {
  const std::vector<int64_t> values = RandomDurations(3000, 3);
  const Sketch whole = SketchOf(values);
  for (const size_t parts : {2u, 3u, 8u}) {
    std::vector<Sketch> sketches(parts);
    for (size_t i = 0; i < values.size(); ++i) sketches[(i * 7919) % parts].Add(values[i]);
    Sketch merged;
    for (size_t i = parts; i-- > 0;) merged.Merge(sketches[i]);
    EXPECT_TRUE(merged == whole) << parts;
    EXPECT_EQ(merged.count(), values.size());
  }
  EXPECT_FALSE(SketchOf({1, 2}) == SketchOf({1, 3}));
}

TEST(Sketch, CountsWhatLiesAboveAThreshold) {
  const Sketch sketch = SketchOf({1, 5, 100, 100, kLargest});
  EXPECT_EQ(sketch.CountAbove(0), 5u);
  EXPECT_EQ(sketch.CountAbove(5), 3u);
  EXPECT_EQ(sketch.CountAbove(100), 1u);
  EXPECT_EQ(sketch.CountAbove(kLargest), 0u);
}

TEST(Sketch, MedianDistanceIsThatOfTheMiddleNumber) {
  EXPECT_EQ(SketchOf({10, 11, 12, 13, 90}).MedianDistanceFrom(12), 1);
  EXPECT_EQ(SketchOf({7, 7, 7}).MedianDistanceFrom(7), 0);
  EXPECT_EQ(Sketch().MedianDistanceFrom(3), 0);
}

}  // namespace
}  // namespace gpusonde::model
