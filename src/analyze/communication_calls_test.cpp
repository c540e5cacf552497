// SPDX-License-Identifier: Apache-2.0
#include "analyze/communication_calls.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpusonde::analyze {
namespace {

using importers::CommunicationCall;
using enum CommunicationCall::Kind;

constexpr int64_t kProcess = 7;

CommunicationCall Call(CommunicationCall::Kind kind, int64_t start_ns, uint16_t group = 0,
                       uint32_t thread = 1) {
  return {.start_ns = start_ns,
          .end_ns = start_ns + 10,
          .process = kProcess,
          .thread = thread,
          .group = group,
          .kind = kind};
}

CommunicatorLaunches LaunchesOf(const std::vector<CommunicationCall>& calls) {
  CommunicationCalls all;
  all.Add(calls);
  all.Finish();
  return all.LaunchesOf(kProcess);
}

// 0 outside of calls.
uint16_t GroupAt(const CommunicatorLaunches& launches, uint32_t thread, int64_t time_ns) {
  const CommunicatorLaunches::Window* const window = launches.At(thread, time_ns);
  return window != nullptr ? window->group : uint16_t{0};
}

TEST(CommunicationCalls, AnOperationLaunchesInItsCallOnItsThread) {
  const CommunicatorLaunches launches =
      LaunchesOf({Call(kOperation, 100, 5), Call(kOperation, 100, 6, 2), Call(kOperation, 200, 6)});
  EXPECT_EQ(GroupAt(launches, 1, 99), 0);
  EXPECT_EQ(GroupAt(launches, 1, 100), 5);
  EXPECT_EQ(GroupAt(launches, 1, 110), 5);
  EXPECT_EQ(GroupAt(launches, 1, 111), 0);
  EXPECT_EQ(GroupAt(launches, 1, 205), 6);
  EXPECT_EQ(GroupAt(launches, 2, 105), 6);
  EXPECT_EQ(GroupAt(launches, 3, 105), 0);
}

TEST(CommunicationCalls, TheOperationsOfAGroupLaunchWhenItsOutermostCallEnds) {
  const CommunicatorLaunches launches = LaunchesOf(
      {Call(kGroupStart, 100), Call(kGroupStart, 200), Call(kOperation, 300, 5), Call(kGroupEnd, 400),
       Call(kOperation, 500, 5), Call(kGroupEnd, 600), Call(kOperation, 700, 6)});
  EXPECT_EQ(GroupAt(launches, 1, 305), 0);
  EXPECT_EQ(GroupAt(launches, 1, 405), 0);
  EXPECT_EQ(GroupAt(launches, 1, 605), 5);
  EXPECT_EQ(GroupAt(launches, 1, 705), 6);
}

TEST(CommunicationCalls, AGroupWithOperationsOfSeveralCommunicatorsHasNone) {
  for (const uint16_t other : {uint16_t{6}, uint16_t{0}}) {
    const CommunicatorLaunches launches =
        LaunchesOf({Call(kGroupStart, 100), Call(kOperation, 200, 5), Call(kOperation, 300, other),
                    Call(kOperation, 350, 5), Call(kGroupEnd, 400), Call(kOperation, 500, 5)});
    EXPECT_EQ(GroupAt(launches, 1, 405), 0);
    EXPECT_EQ(GroupAt(launches, 1, 505), 5);
  }
}

TEST(CommunicationCalls, ATraceMayBeginWithinAGroup) {
  const CommunicatorLaunches launches = LaunchesOf(
      {Call(kGroupEnd, 100), Call(kGroupStart, 200), Call(kOperation, 300, 5), Call(kGroupEnd, 400)});
  EXPECT_EQ(GroupAt(launches, 1, 105), 0);
  EXPECT_EQ(GroupAt(launches, 1, 405), 5);
}

TEST(CommunicationCalls, TheFirstCallsAreKeptWhateverTheOrder) {
  constexpr auto kCalls = static_cast<int64_t>(CommunicationCalls::kMaxCalls) + 1'000;
  for (const bool reversed : {false, true}) {
    CommunicationCalls all, others;
    for (int64_t i = 0; i < kCalls; ++i) {
      const int64_t at = reversed ? kCalls - 1 - i : i;
      const CommunicationCall call = Call(kOperation, 100 * at, static_cast<uint16_t>(1 + at % 7));
      (at % 2 == 0 ? all : others).Add({&call, 1});
    }
    all.Merge(others);
    all.Finish();
    EXPECT_EQ(all.beyond_bound(), 1'000);
    const CommunicatorLaunches launches = all.LaunchesOf(kProcess);
    const int64_t last = kCalls - 1'001;
    EXPECT_EQ(GroupAt(launches, 1, 100 * last), 1 + last % 7);
    EXPECT_EQ(GroupAt(launches, 1, 100 * (last + 1)), 0);
  }
}

TEST(CommunicationCalls, OperationsWithoutACommunicatorAreCounted) {
  CommunicationCalls all;
  all.Add(std::vector{Call(kGroupStart, 100), Call(kOperation, 200), Call(kOperation, 300, 5)});
  EXPECT_EQ(all.without_communicator(), 1);
}

}  // namespace
}  // namespace gpusonde::analyze
