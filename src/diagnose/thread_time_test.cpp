// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace gpusonde::diagnose {
namespace {

using enum ThreadState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr Id128 kOne{1, 1}, kTwo{2, 2};

std::vector<std::pair<Id128, double>> OthersOf(const ThreadTime& time, ThreadState state) {
  std::vector<std::pair<Id128, double>> others;
  for (const auto& [who, ns] : time.By(state)) others.emplace_back(who, ns);
  return others;
}

TEST(ThreadTime, EachStateOfAThreadHasAMetric) {
  size_t states = 0;
  for (const model::MetricInfo& info : model::kMetricCatalogue) {
    const std::optional<ThreadState> state = ThreadStateOf(info.metric);
    EXPECT_EQ(state.has_value(), info.name.starts_with("thread.")) << info.name;
    states += state.has_value() ? 1 : 0;
  }
  EXPECT_EQ(states, kThreadStates);
  EXPECT_EQ(ThreadStateOf(model::Metric::kThreadRunQueue), kRunQueue);
  EXPECT_EQ(ThreadStateOf(model::Metric::kThreadStopped), kStopped);
  EXPECT_EQ(ThreadStateOf(model::Metric::kThreadDisplaced), kDisplaced);
}

TEST(ThreadTime, PartsOfOtherStatesDontAddToTheTotal) {
  ThreadTime time;
  for (size_t i = 0; i < kThreadStates; ++i) time.Add(static_cast<ThreadState>(i), 10);
  EXPECT_EQ(time.total(), 80);
}

TEST(ThreadTime, IsDueToOtherProcessesByState) {
  ThreadTime time;
  time.Add(kRunQueue, 1, kTwo);
  time.Add(kRunQueue, 2);
  time.Add(kRunQueue, 3, kTwo);
  time.Add(kWaiting, 5, kOne);
  time.Add(kRunning, 7, kOne);
  EXPECT_THAT(OthersOf(time, kRunQueue), ElementsAre(Pair(Id128{}, 2), Pair(kTwo, 4)));
  EXPECT_THAT(OthersOf(time, kWaiting), ElementsAre(Pair(kOne, 5)));
  EXPECT_THAT(OthersOf(time, kRunning), IsEmpty()) << "nobody else is responsible for that";
  EXPECT_EQ(time.By(kRunQueue, kTwo), 4);
  EXPECT_EQ(time.By(kWaiting, kTwo), 0);
}

TEST(ThreadTime, OfTwoIntervalsIsTheSum) {
  ThreadTime sum, other;
  sum.Add(kRunning, 10);
  sum.Add(kRunQueue, 1, kOne);
  other.Add(kRunning, 4);
  other.Add(kReclaim, 2);
  other.Add(kRunQueue, 2, kOne);
  other.Add(kRunQueue, 4, kTwo);
  sum.Add(other, 0.5);
  EXPECT_EQ(sum[kRunning], 12);
  EXPECT_EQ(sum[kReclaim], 1);
  EXPECT_EQ(sum[kRunQueue], 4);
  EXPECT_THAT(OthersOf(sum, kRunQueue), ElementsAre(Pair(kOne, 2), Pair(kTwo, 2)));
}

}  // namespace
}  // namespace gpusonde::diagnose
