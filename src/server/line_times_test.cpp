// SPDX-License-Identifier: Apache-2.0
#include "server/line_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gpusonde::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

auto Time(int64_t self_ns, int64_t total_ns) {
  return AllOf(Field(&LineTime::self_ns, self_ns), Field(&LineTime::total_ns, total_ns));
}

// main.c:10 calls work (inlined into it at line 20, in work.h:5), which calls a library.
model::Profile Calls() {
  model::Profile profile;
  profile.functions = {{.name = "main", .file = "/src/main.c"},
                       {.name = "work", .file = "/src/work.h"},
                       {.name = "memcpy", .file = ""}};
  profile.locations = {
      {.lines = {{0, 10}}}, {.lines = {{1, 5}, {0, 20}}}, {.lines = {{2, 0}}}, {.lines = {}}};
  profile.stacks = {{2, 1, 0}, {1, 0}, {0}, {3}};
  profile.samples = {{.stack = 0, .weight_ns = 100},
                     {.stack = 1, .weight_ns = 10},
                     {.stack = 2, .weight_ns = 1},
                     {.stack = 3, .weight_ns = 1000}};
  return profile;
}

TEST(LineTimes, ALinesTotalIncludesCalleesAndItsSelfTimeExcludesInnerLinesOfTheFile) {
  const model::Profile profile = Calls();
  EXPECT_THAT(TimesByLine(profile, "/src/main.c"),
              ElementsAre(Pair(10, Time(1, 111)), Pair(20, Time(110, 110))));
  EXPECT_THAT(TimesByLine(profile, "/src/work.h"), ElementsAre(Pair(5, Time(110, 110))));
  EXPECT_THAT(TimesByLine(profile, "/src/main"), IsEmpty());
  EXPECT_EQ(TotalTime(profile), 1111);
}

TEST(LineTimes, ARecursiveLineCountsOnce) {
  model::Profile profile = Calls();
  profile.stacks[2] = {0, 0, 0};
  EXPECT_THAT(TimesByLine(profile, "/src/main.c"),
              ElementsAre(Pair(10, Time(1, 111)), Pair(20, Time(110, 110))));
}

TEST(LineTimes, HostileProfilesStayInBounds) {
  model::Profile profile = Calls();
  profile.locations[0].lines = {{-1, 10}, {0, -7}};
  profile.stacks[3] = {-1, 0};
  profile.samples.push_back({.stack = -1, .weight_ns = 5});
  profile.samples.push_back({.stack = 99, .weight_ns = 5});
  profile.samples.push_back({.stack = 2, .weight_ns = -100});
  profile.samples.push_back({.stack = 2, .weight_ns = kMax});
  EXPECT_THAT(TimesByLine(profile, "/src/main.c"),
              ElementsAre(Pair(0, Time(kMax, kMax)), Pair(20, Time(110, 110))));
}

}  // namespace
}  // namespace gpusonde::server
