// SPDX-License-Identifier: Apache-2.0
#include "base/time_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace gpusonde {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::pair<int64_t, int64_t>> Pairs(const std::vector<TimeRange>& ranges) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const TimeRange& range : ranges) pairs.emplace_back(range.from_ns, range.to_ns);
  return pairs;
}

TEST(TimeRange, LengthOfManyIsTheSum) {
  const std::vector<TimeRange> ranges = {{-5, 10}, {20, 20}, {30, 32}};
  EXPECT_EQ(LengthOf(ranges.front()), 15);
  EXPECT_EQ(LengthOf(ranges), 17);
  EXPECT_EQ(LengthOf(std::vector<TimeRange>()), 0);
}

TEST(TimeRange, ALengthAsADoubleIsOfAnyTwoTimes) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(LengthNs(TimeRange{-5, 10}), 15.0);
  EXPECT_EQ(LengthNs(TimeRange{10, -5}), -15.0);
  EXPECT_EQ(LengthNs(TimeRange{kFirst, kLast}), 0x1p64);
  EXPECT_EQ(LengthNs(TimeRange{kLast, kFirst}), -0x1p64);
  EXPECT_EQ(LengthNs(std::vector<TimeRange>{{-5, 10}, {20, 20}, {30, 32}}), 17.0);
  EXPECT_EQ(LengthNs(std::vector<TimeRange>{{kFirst, kLast}, {kFirst, kLast}}), 0x1p65);
}

TEST(TimeRange, UnionJoinsWhatOverlapsOrTouches) {
  const std::vector<TimeRange> ranges = {{0, 10}, {2, 5}, {10, 12}, {13, 20}, {19, 21}};
  EXPECT_THAT(Pairs(UnionOf(ranges)), ElementsAre(Pair(0, 12), Pair(13, 21)));
  EXPECT_THAT(UnionOf(std::vector<TimeRange>()), IsEmpty());
}

TEST(TimeRange, UnionGrowsRangeByRange) {
  std::vector<TimeRange> joined;
  for (const TimeRange& range : {TimeRange{0, 10}, {2, 5}, {10, 12}, {13, 20}}) AppendToUnion(range, joined);
  EXPECT_THAT(Pairs(joined), ElementsAre(Pair(0, 12), Pair(13, 20)));
}

TEST(TimeRange, UnionWithinARangeIsClipped) {
  const std::vector<TimeRange> ranges = {{0, 10}, {2, 5}, {12, 12}, {13, 20}, {21, 30}};
  EXPECT_THAT(Pairs(UnionOf(ranges, {4, 15})), ElementsAre(Pair(4, 10), Pair(13, 15)));
  EXPECT_THAT(UnionOf(ranges, {10, 13}), IsEmpty());
}

TEST(TimeRange, IntersectionIsWhatBothHave) {
  const std::vector<TimeRange> a = {{0, 10}, {20, 30}};
  const std::vector<TimeRange> b = {{5, 8}, {9, 22}, {25, 40}};
  EXPECT_THAT(Pairs(Intersect(a, b)), ElementsAre(Pair(5, 8), Pair(9, 10), Pair(20, 22), Pair(25, 30)));
  EXPECT_EQ(Pairs(Intersect(a, b)), Pairs(Intersect(b, a)));
  EXPECT_THAT(Intersect(a, std::vector<TimeRange>{{10, 20}}), IsEmpty());
}

TEST(TimeRange, SubtractionIsWhatOnlyTheFirstHas) {
  const std::vector<TimeRange> a = {{0, 10}, {20, 30}, {40, 50}};
  const std::vector<TimeRange> b = {{2, 4}, {6, 22}, {25, 26}, {50, 60}};
  EXPECT_THAT(Pairs(Subtract(a, b)),
              ElementsAre(Pair(0, 2), Pair(4, 6), Pair(22, 25), Pair(26, 30), Pair(40, 50)));
  EXPECT_THAT(Subtract(a, a), IsEmpty());
  EXPECT_EQ(Pairs(Subtract(a, std::vector<TimeRange>())), Pairs(a));
}

}  // namespace
}  // namespace gpusonde
