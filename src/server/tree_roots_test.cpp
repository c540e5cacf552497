// SPDX-License-Identifier: Apache-2.0
#include "server/tree_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::server {
namespace {

using model::Profile;
using testing::Contains;
using testing::Field;
using testing::Not;

void Add(Profile& profile, const Profile::Thread& thread, int64_t weight_ns) {
  profile.samples.push_back(
      {.thread = static_cast<int32_t>(profile.threads.size()), .count = 1, .weight_ns = weight_ns});
  profile.threads.push_back(thread);
}

// One long process, and a compiler's run of short ones, two threads each.
Profile Build() {
  Profile profile;
  Add(profile, {{1, 0}, 10, 10, "train", "train", "/opt/bin/train --data /big", 1}, 100'000);
  for (int32_t i = 0; i < 50; ++i) {
    const Id128 process{2, static_cast<uint64_t>(i)};
    const int32_t pid = 100 + i;
    Add(profile, {process, pid, pid, "cc1plus", "cc1plus", "cc1plus a.cpp", 1}, 10);
    Add(profile, {process, pid, pid + 1000, "cc1plus", "io", "cc1plus a.cpp", 1}, 10);
  }
  return profile;
}

TEST(TreeRoots, AProcessIsNamedByItsCommandLine) {
  const TreeRoots roots = RootsOf(Build(), 0);
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "train --data /big (pid 10)")));
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "main thread")));
}

TEST(TreeRoots, SmallOnesOfANameShareTheirFrames) {
  const TreeRoots roots = RootsOf(Build(), 7);
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "cc1plus (50 processes)")));
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "thread io (50 threads)")));
  EXPECT_THAT(roots.functions, Not(Contains(Field(&TreeRoots::Function::name, "cc1plus a.cpp (pid 100)"))));
  EXPECT_EQ(roots.pairs.size(), 3u);
  EXPECT_EQ(roots.pairs[0][0], 7) << "numbered from the first free one";
}

TEST(TreeRoots, ASmallOneThatIsAloneKeepsItsCommandLine) {
  Profile profile = Build();
  Add(profile, {{3, 0}, 30, 31, "cron", "worker", "", 1}, 1);
  const TreeRoots roots = RootsOf(profile, 0);
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "cron (pid 30)")));
  EXPECT_THAT(roots.functions, Contains(Field(&TreeRoots::Function::name, "thread worker (31)")));
}

}  // namespace
}  // namespace gpusonde::server
