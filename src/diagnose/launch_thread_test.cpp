// SPDX-License-Identifier: Apache-2.0
#include "diagnose/launch_thread.h"

#include <gtest/gtest.h>

namespace gpusonde::diagnose {
namespace {

constexpr int32_t kThread = 11;

TEST(LaunchThread, OneThatLaunchesNoLongerIsReplaced) {
  LaunchThread launch_thread;
  EXPECT_EQ(launch_thread.Usual(), std::nullopt);
  for (int i = 0; i < 1'000'000; ++i) launch_thread.Ingest(kThread, i);
  EXPECT_EQ(launch_thread.Usual(), kThread);
  for (int i = 0; i < 100'000; ++i) launch_thread.Ingest(i % 2 == 0 ? kThread + 1 : kThread + 2 + i, i);
  EXPECT_EQ(launch_thread.Usual(), kThread + 1);
}

TEST(LaunchThread, OfTwoThatLaunchAsMuchTheFirstIsKept) {
  LaunchThread launch_thread;
  for (int i = 0; i < 300; ++i) {
    for (int of = 0; of < 100; ++of) launch_thread.Ingest(i % 3 == 0 ? kThread : kThread + 1 + i % 2, i);
    EXPECT_EQ(launch_thread.Usual(), kThread);
  }
}

TEST(LaunchThread, AStepIsThatOfTheUsualOneUnlessOnlyOthersCalled) {
  LaunchThread launch_thread;
  const auto call = [&](int32_t tid, int64_t from_ns, int calls) {
    for (int i = 0; i < calls; ++i) launch_thread.Ingest(tid, from_ns + i);
  };
  EXPECT_EQ(launch_thread.Of({0, 100}), std::nullopt);
  call(kThread, 0, 10);
  EXPECT_EQ(launch_thread.Of({0, 100}), kThread);
  call(kThread + 1, 100, 3);
  call(kThread + 2, 110, 4);
  EXPECT_EQ(launch_thread.Of({100, 200}), kThread + 2) << "the one with the most calls";
  call(kThread + 1, 200, 2);
  EXPECT_EQ(launch_thread.Of({200, 300}), kThread) << "two calls: its own may not have been sampled";
  call(kThread + 1, 300, 4);
  call(kThread, 310, 1);
  EXPECT_EQ(launch_thread.Of({300, 400}), kThread);
  call(kThread + 1, 500, 4);
  EXPECT_EQ(launch_thread.Of({400, 500}), kThread) << "after the step";
  EXPECT_EQ(launch_thread.Of({500, 600}), kThread + 1);
}

}  // namespace
}  // namespace gpusonde::diagnose
