// SPDX-License-Identifier: Apache-2.0
#include "analyze/recorded_time.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/archive.h"

namespace gpusonde::analyze {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3'600 * kSecond;

using Times = std::vector<std::pair<int64_t, int64_t>>;

Times Of(const std::vector<TimeRange>& ranges) {
  Times times;
  for (const TimeRange& range : ranges) times.emplace_back(range.from_ns, range.to_ns);
  return times;
}

RecordedTime With(const Times& events) {
  RecordedTime recorded;
  for (const auto& [start_ns, end_ns] : events) recorded.Cover(start_ns, end_ns);
  return recorded;
}

// A second of events 10 ms apart.
void AddActivity(int64_t at_ns, Times& events) {
  for (int64_t i = 0; i < 100; ++i)
    events.emplace_back(at_ns + i * 10'000'000, at_ns + i * 10'000'000 + 5'000);
}

TEST(RecordedTime, GapsLieBetweenTheLastEndAndTheNextStartWhateverTheOrder) {
  std::mt19937 random(7);
  Times events;
  for (const int64_t at_s : {0, 3, 5, 4'000, 4'020}) AddActivity(at_s * kSecond, events);
  events.emplace_back(5 * kSecond, 8 * kSecond);
  const Times expected = {{8 * kSecond, 4'000 * kSecond}, {4'000 * kSecond + 990'005'000, 4'020 * kSecond}};
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(events, random);
    RecordedTime parts[3];
    for (const auto& [begin_ns, end_ns] : events) parts[random() % 3].Cover(begin_ns, end_ns);
    RecordedTime all;
    for (const size_t i : {1, 0, 2}) all.Merge(parts[i]);
    EXPECT_EQ(Of(all.Gaps(10 * kSecond)), expected);
  }
}

TEST(RecordedTime, MoreRangesThanItKeepsOnlyHideShortGaps) {
  constexpr int64_t kCount = 100'000;
  RecordedTime recorded;
  for (int64_t i = 0; i < kCount; ++i) {  // alternately from both ends
    const int64_t at_ns = (i % 2 == 0 ? i : kCount - i) * 3 * kSecond;
    recorded.Cover(at_ns, at_ns + 1);
  }
  const int64_t last_ns = kCount * 3 * kSecond + kHour;
  recorded.Cover(last_ns, last_ns);
  EXPECT_THAT(Of(recorded.Gaps(kHour / 2)), ElementsAre(Pair(testing::_, last_ns)));
  ArchiveWriter writer;
  writer(recorded);
  const std::string bytes = writer.Take();
  EXPECT_LT(bytes.size(), 40'000U);
  RecordedTime read;
  ArchiveReader reader(bytes);
  reader(read);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(Of(read.Gaps(kHour / 2)), Of(recorded.Gaps(kHour / 2)));
}

TEST(FindUnrecorded, LeavesOutAnHourWithoutAnyEvent) {
  Times events;
  AddActivity(0, events);
  AddActivity(kHour, events);
  AddActivity(3 * kHour, events);
  const UnrecordedTime found = FindUnrecorded(With(events));
  EXPECT_THAT(Of(found.left_out),
              ElementsAre(Pair(990'005'000, kHour), Pair(kHour + 990'005'000, 3 * kHour)));
  EXPECT_THAT(Of(found.counted), IsEmpty());
}

TEST(FindUnrecorded, WhatIsInProgressIsAnEvent) {
  Times events;
  AddActivity(0, events);
  AddActivity(kHour, events);
  events.emplace_back(500'000'000, kHour + 1);
  EXPECT_TRUE(FindUnrecorded(With(events)).empty());
}

TEST(FindUnrecorded, APauseThatAProgramMayMakeIsOnlyNoted) {
  Times events;
  AddActivity(0, events);
  AddActivity(599 * kSecond, events);
  UnrecordedTime found = FindUnrecorded(With(events));
  EXPECT_THAT(Of(found.left_out), IsEmpty());
  EXPECT_THAT(Of(found.counted), ElementsAre(Pair(990'005'000, 599 * kSecond)));
  // An hour after half an hour of activity.
  events.clear();
  for (int64_t i = 0; i < 1'800; ++i) AddActivity(i * kSecond, events);
  AddActivity(kHour * 3 / 2, events);
  found = FindUnrecorded(With(events));
  EXPECT_THAT(Of(found.left_out), IsEmpty());
  EXPECT_THAT(found.counted, testing::SizeIs(1));
}

TEST(FindUnrecorded, AProgramThatOftenPausesIsIdle) {
  Times events;
  for (int64_t i = 0; i < 24; ++i) AddActivity(i * kHour, events);
  const UnrecordedTime found = FindUnrecorded(With(events));
  EXPECT_THAT(found.left_out, IsEmpty());
  EXPECT_THAT(found.counted, testing::SizeIs(23));
}

TEST(FindUnrecorded, OrdinaryTracesHaveNone) {
  EXPECT_TRUE(FindUnrecorded({}).empty());
  EXPECT_TRUE(FindUnrecorded(With({{0, 1}, {9 * kSecond, 9 * kSecond + 1}})).empty());
  Times events;  // pauses of 15 s in a minute
  for (const int64_t at_s : {0, 20, 40}) {
    for (int64_t i = 0; i < 15; ++i) AddActivity((at_s + i) * kSecond, events);
  }
  AddActivity(70 * kSecond, events);
  EXPECT_TRUE(FindUnrecorded(With(events)).empty());
}

TEST(ClockWithout, StandsStillInWhatIsLeftOut) {
  const std::vector<TimeRange> left_out = {{100, 200}, {300, 350}};
  const ClockWithout clock(left_out);
  std::vector<std::tuple<int64_t, int64_t>> pairs = {{50, 50},   {100, 100}, {150, 100}, {200, 100},
                                                     {299, 199}, {330, 200}, {350, 200}, {400, 250}};
  for (const auto& [traced, without] : pairs) EXPECT_EQ(clock.Without(traced), without) << traced;
  EXPECT_EQ(clock.EndOf(100), 100);
  EXPECT_EQ(clock.StartOf(100), 200);
  EXPECT_EQ(clock.EndOf(200), 300);
  EXPECT_EQ(clock.StartOf(200), 350);
  EXPECT_EQ(clock.StartOf(250), 400);
  EXPECT_EQ(clock.StartOf(50), 50);
}

}  // namespace
}  // namespace gpusonde::analyze
