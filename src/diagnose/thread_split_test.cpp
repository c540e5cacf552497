// SPDX-License-Identifier: Apache-2.0
#include "diagnose/thread_split.h"

#include <gtest/gtest.h>

#include <random>

namespace gpusonde::diagnose {
namespace {

TEST(SplitTime, ThePartsSumToTheWholeAndNoneIsNegative) {
  std::mt19937 random(3);
  // Many zeros, and parts that are longer than what they are part of.
  const auto some = [&] { return random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 10'000'000); };
  for (int i = 0; i < 10'000; ++i) {
    const ThreadTime time{.running = some(),
                          .run_queue = some(),
                          .blocked_io = some(),
                          .blocked = some(),
                          .waiting = some(),
                          .sleeping = some(),
                          .network = some(),
                          .stopped = some(),
                          .interrupted = some(),
                          .reclaim = some()};
    const ThreadParts parts = SplitTime(time);
    ASSERT_NEAR(parts.total(), time.total(), 1e-3) << i;
    for (const double part : {parts.cpu, parts.interrupted, parts.reclaim, parts.blocked, parts.blocked_io,
                              parts.run_queue, parts.waiting, parts.sleeping, parts.network, parts.stopped})
      ASSERT_GE(part, 0) << i;
    ASSERT_LE(parts.interrupted, time.interrupted) << i;
    ASSERT_LE(parts.reclaim, time.reclaim) << i;
  }
}

TEST(SplitTime, InterruptsAndReclaimAreNotCpuTime) {
  const ThreadParts parts = SplitTime({.running = 10, .interrupted = 2, .reclaim = 3});
  EXPECT_EQ(parts.cpu, 5);
  EXPECT_EQ(parts.interrupted, 2);
  EXPECT_EQ(parts.reclaim, 3);
}

TEST(SplitTime, ReclaimBeyondRunningIsTakenOutOfBlockedAndThenOutOfIo) {
  const ThreadTime time{.running = 10, .blocked_io = 20, .blocked = 5, .interrupted = 2, .reclaim = 15};
  const ThreadParts parts = SplitTime(time);
  EXPECT_EQ(parts.reclaim, 15);
  EXPECT_EQ(parts.cpu, 0);
  EXPECT_EQ(parts.blocked, 0);
  EXPECT_EQ(parts.blocked_io, 18);
}

TEST(SplitTime, ReclaimIsCutToTheTimeThatItCanBePartOf) {
  const ThreadParts parts =
      SplitTime({.running = 1, .blocked_io = 1, .blocked = 1, .sleeping = 50, .reclaim = 40});
  EXPECT_EQ(parts.reclaim, 3);
  EXPECT_EQ(parts.sleeping, 50);
}

}  // namespace
}  // namespace gpusonde::diagnose
