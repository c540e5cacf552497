// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_split.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <random>
#include <utility>

namespace gpusonde::diagnose {
namespace {

using enum ThreadState;

ThreadTime TimeOf(std::initializer_list<std::pair<ThreadState, double>> states) {
  ThreadTime time;
  for (const auto& [state, ns] : states) time.Add(state, ns);
  return time;
}

TEST(SplitTime, ThePartsSumToTheWholeAndNoneIsNegative) {
  std::mt19937 random(3);
  // Many zeros, and parts that are longer than what they are part of.
  const auto some = [&] { return random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 10'000'000); };
  for (int i = 0; i < 10'000; ++i) {
    ThreadTime time;
    for (size_t state = 0; state < kThreadStates; ++state) time.Add(static_cast<ThreadState>(state), some());
    const ThreadParts parts = SplitTime(time);
    ASSERT_NEAR(parts.total(), time.total(), 1e-3) << i;
    for (const double part : parts.ns) ASSERT_GE(part, 0) << i;
    ASSERT_LE(parts[kInterrupted], time[kInterrupted]) << i;
    ASSERT_LE(parts[kReclaim], time[kReclaim]) << i;
  }
}

TEST(SplitTime, InterruptsAndReclaimAreNotCpuTime) {
  const ThreadParts parts = SplitTime(TimeOf({{kRunning, 10}, {kInterrupted, 2}, {kReclaim, 3}}));
  EXPECT_EQ(parts[kRunning], 5);
  EXPECT_EQ(parts[kInterrupted], 2);
  EXPECT_EQ(parts[kReclaim], 3);
}

TEST(SplitTime, ReclaimBeyondRunningIsTakenOutOfBlockedAndThenOutOfIo) {
  const ThreadTime time =
      TimeOf({{kRunning, 10}, {kBlockedIo, 20}, {kBlocked, 5}, {kInterrupted, 2}, {kReclaim, 15}});
  const ThreadParts parts = SplitTime(time);
  EXPECT_EQ(parts[kReclaim], 15);
  EXPECT_EQ(parts[kRunning], 0);
  EXPECT_EQ(parts[kBlocked], 0);
  EXPECT_EQ(parts[kBlockedIo], 18);
}

TEST(SplitTime, ReclaimIsCutToTheTimeThatItCanBePartOf) {
  const ThreadParts parts =
      SplitTime(TimeOf({{kRunning, 1}, {kBlockedIo, 1}, {kBlocked, 1}, {kSleeping, 50}, {kReclaim, 40}}));
  EXPECT_EQ(parts[kReclaim], 3);
  EXPECT_EQ(parts[kSleeping], 50);
}

}  // namespace
}  // namespace gpusonde::diagnose
