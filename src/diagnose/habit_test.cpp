// SPDX-License-Identifier: Apache-2.0
#include "diagnose/habit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/testing/units.h"

namespace gpusonde::diagnose {
namespace {

struct HabitTest : testing::Test {
  Habit habit;
  std::mt19937 random{1};

  // Clean steps of 10 ms of work and a wait with this mean; returns how often waits() changed.
  int Learn(int steps, auto wait_ns, double asleep_share = 0) {
    int changes = 0;
    for (int i = 0; i < steps; ++i) {
      const double idle_ns = wait_ns();
      changes += habit.Learn({10 * kMs + idle_ns, idle_ns, asleep_share * idle_ns}) ? 1 : 0;
    }
    return changes;
  }
  double RandomWait() {
    return std::exponential_distribution<double>(1.0 / (20 * kMs))(random);  // a mean of 20 ms
  }
};

TEST_F(HabitTest, RequestsThatArriveAtRandomShowIt) {
  EXPECT_EQ(Learn(100, [&] { return RandomWait(); }), 1);
  EXPECT_TRUE(habit.waits());
}

TEST_F(HabitTest, RegularSleepsShowItAndRegularWaitsDont) {
  EXPECT_EQ(Learn(1000, [] { return 20.0 * kMs; }), 0) << "other nodes of a job";
  EXPECT_EQ(Learn(1000, [] { return 20.0 * kMs; }, 1), 1) << "its own choice";
}

// Twenty steps of 1 ms, of which one takes 65 ms: their sum of waits is large and irregular.
TEST_F(HabitTest, NoSingleStepShowsIt) {
  for (int i = 0; i < 1000; ++i) {
    const double idle_ns = i % 100 == 50 ? 65 * kMs : 0;
    ASSERT_FALSE(habit.Learn({kMs + idle_ns, idle_ns, 0})) << i;
  }
}

// Requests come from a thread that generates them; or another thread held a lock once.
TEST_F(HabitTest, WaitsForThreadsThatSleepArePartOfItIfTheyAreCommon) {
  for (const double share : {0.1, 0.4}) {
    Habit fresh;
    for (int i = 0; i < 100; ++i) {
      const double idle_ns = RandomWait();
      fresh.Learn({.total_ns = 10 * kMs + idle_ns, .idle_ns = idle_ns, .others_asleep_ns = share * idle_ns});
    }
    ASSERT_TRUE(fresh.waits());
    EXPECT_EQ(fresh.waits_for_sleepers(), share > 0.2) << share;
  }
}

TEST_F(HabitTest, SaysWhenWaitsForThreadsThatSleepBecomePartOfIt) {
  ASSERT_EQ(Learn(100, [&] { return RandomWait(); }), 1);
  ASSERT_FALSE(habit.waits_for_sleepers());
  int changes = 0;
  for (int i = 0; i < 100; ++i) {
    const double idle_ns = RandomWait();
    changes +=
        habit.Learn({.total_ns = 2 * idle_ns, .idle_ns = idle_ns, .others_asleep_ns = idle_ns}) ? 1 : 0;
  }
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(habit.waits_for_sleepers());
}

TEST_F(HabitTest, IsGivenUpIfWaitsTurnOutToBeRare) {
  ASSERT_EQ(Learn(100, [&] { return RandomWait(); }), 1) << "downloads its data first";
  EXPECT_EQ(Learn(2000, [] { return 0.0; }), 1);
  EXPECT_FALSE(habit.waits());
}

TEST_F(HabitTest, ABusyHourDoesNotEndIt) {
  ASSERT_EQ(Learn(1000, [&] { return RandomWait(); }), 1);
  EXPECT_EQ(Learn(5000, [] { return 0.0; }), 0);
  EXPECT_EQ(Learn(1000, [&] { return RandomWait(); }), 0);
  EXPECT_TRUE(habit.waits());
}

// An engine that works on the requests of many at a time waits when it has none.
TEST_F(HabitTest, AServerThatRarelyWaitsForOtherProcessesShowsIt) {
  const auto learn = [&](int steps, auto wait_ns) {
    int changes = 0;
    for (int i = 0; i < steps; ++i) {
      const double outside_ns = i % 50 == 0 ? wait_ns() : 0;
      changes +=
          habit.Learn({.total_ns = 3 * kMs + outside_ns, .idle_ns = outside_ns, .outside_ns = outside_ns});
    }
    return changes;
  };
  EXPECT_EQ(learn(2000, [] { return 20.0 * kMs; }), 0) << "regular waits, of a pipeline of processes";
  habit = {};
  EXPECT_EQ(learn(400, [&] { return RandomWait(); }), 0) << "too few waits";
  EXPECT_EQ(learn(1600, [&] { return RandomWait(); }), 1);
  EXPECT_TRUE(habit.waits());
  EXPECT_EQ(learn(5000, [] { return 0.0; }), 0) << "a busy minute";
  EXPECT_EQ(learn(50'000, [] { return 0.0; }), 1) << "something else";
}

TEST_F(HabitTest, RareWaitsForPacketsShowItIfTheyTakeATenthOfTheTime) {
  const auto learn = [&](int every) {
    habit = {};
    int changes = 0;
    for (int i = 0; i < 2000; ++i) {
      const double packets_ns = i % every == 0 ? RandomWait() : 0;
      changes +=
          habit.Learn({.total_ns = 10 * kMs + packets_ns, .idle_ns = packets_ns, .packets_ns = packets_ns});
    }
    return changes;
  };
  EXPECT_EQ(learn(80), 0) << "a fortieth: batches that come from a distant disk";
  EXPECT_EQ(learn(8), 1);
}

// An engine whose scheduler looks for requests again and again.
TEST_F(HabitTest, RareIrregularSleepsShowItIfTheyTakeATenthOfTheTime) {
  const auto learn = [&](int every, auto wait_ns) {
    habit = {};
    int changes = 0;
    for (int i = 0; i < 4000; ++i) {
      const double asleep_ns = i % every == 0 ? wait_ns() : 0;
      changes += habit.Learn({3 * kMs + asleep_ns, asleep_ns, asleep_ns}) ? 1 : 0;
    }
    return changes;
  };
  EXPECT_EQ(learn(300, [&] { return RandomWait(); }), 0) << "a fiftieth: it waits for a file now and then";
  EXPECT_EQ(learn(30, [] { return 20.0 * kMs; }), 0) << "a logger that sleeps, a pause every 30 steps";
  EXPECT_EQ(learn(30, [&] { return RandomWait(); }), 1);
  EXPECT_TRUE(habit.waits());
  for (int i = 0; i < 4000; ++i) EXPECT_FALSE(habit.Learn({3 * kMs, 0, 0})) << "a busy while";
}

// Its longest steps are those that wait, which are suspected to be slow.
TEST_F(HabitTest, SuspectedStepsShowItToo) {
  int changes = 0;
  for (int i = 0; i < 1000; ++i) {
    const double outside_ns = i % 50 == 0 ? RandomWait() : 0;
    const StepTime step{.total_ns = 3 * kMs + outside_ns, .idle_ns = outside_ns, .outside_ns = outside_ns};
    changes += (outside_ns > 0 ? habit.LearnSuspect(step) : habit.Learn(step)) ? 1 : 0;
  }
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(habit.waits());
}

}  // namespace
}  // namespace gpusonde::diagnose
