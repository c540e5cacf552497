// SPDX-License-Identifier: Apache-2.0
#include "diagnose/actors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "diagnose/cause.h"

namespace gpusonde::diagnose {
namespace {

using testing::UnorderedElementsAre;

struct ActorsTest : testing::Test {
  static constexpr int64_t kSecond = kNanosPerSecond;
  const Id128 shell{1, 1}, train{1, 2}, loader{1, 3}, later{1, 4};
  Actors actors;

  void AddProcess(const Id128& id, int32_t pid, int32_t parent, int64_t started_s,
                  std::optional<int64_t> exited_s = std::nullopt) {
    actors.Ingest({.process = id,
                   .pid = pid,
                   .parent_pid = parent,
                   .started_ns = started_s * kSecond,
                   .exited_ns = exited_s.transform([](int64_t seconds) { return seconds * kSecond; })});
  }
};

TEST_F(ActorsTest, AFamilyExcludesTheChildrenOfALaterProcessWithTheSamePid) {
  AddProcess(shell, 10, 1, 1, 5);
  AddProcess(train, 11, 10, 2);
  AddProcess(loader, 12, 11, 3);
  AddProcess(later, 13, 10, 7);
  EXPECT_THAT(actors.FamilyOf(shell), UnorderedElementsAre(shell, train, loader));
}

TEST_F(ActorsTest, AnAdoptedProcessKeepsItsOriginalParent) {
  AddProcess(train, 11, 1, 2);
  AddProcess(loader, 12, 11, 3);
  AddProcess(loader, 12, 1, 3);  // re-parented to init
  EXPECT_THAT(actors.FamilyOf(train), UnorderedElementsAre(train, loader));
}

TEST_F(ActorsTest, EndedProcessesAreDroppedUnlessTheyAreParentsOfLiveOnes) {
  AddProcess(shell, 10, 1, 1, 5);
  AddProcess(train, 11, 10, 2);
  AddProcess(loader, 12, 11, 3, 6);
  actors.ForgetEndedBefore(100 * kSecond);
  EXPECT_EQ(actors.Find(loader), nullptr);
  EXPECT_NE(actors.Find(shell), nullptr);
  EXPECT_THAT(actors.FamilyOf(shell), UnorderedElementsAre(shell, train));
  AddProcess(train, 11, 10, 2, 150);
  actors.ForgetEndedBefore(400 * kSecond);
  EXPECT_EQ(actors.Find(train), nullptr);
  actors.ForgetEndedBefore(600 * kSecond);
  EXPECT_EQ(actors.Find(shell), nullptr);
}

TEST_F(ActorsTest, OfGpusondesCommandsOnlyThoseThatProfileAreItself) {
  const auto actor_of = [&](const std::string& command, const std::string& name = "gpusonde") {
    actors.Ingest({.process = train, .pid = 11, .name = name, .command = command, .started_ns = kSecond});
    return actors.ActorOf(train, {});
  };
  for (const std::string command :
       {"/usr/bin/gpusonde record -o run.sonde -- python3 train.py", "gpusonde up", "gpusonde",
        "gpusonde agent --server https://host", "gpusonde --memory-limit-mb 500 up"})
    EXPECT_TRUE(IsSelf(actor_of(command))) << command;
  EXPECT_TRUE(IsSelf(actor_of("gpusonde record -- true", "gpusonde-files")));
  const Actor analyze = actor_of("/usr/bin/gpusonde analyze rank0.json up");
  EXPECT_FALSE(IsSelf(analyze));
  EXPECT_EQ(analyze.name, "gpusonde analyze");
  EXPECT_EQ(actor_of("python3 analyze.py", "python3").name, "python3");
}

TEST_F(ActorsTest, AContainerIsNamedInsteadOfItsCgroup) {
  const std::string worker(64, 'a'), web(64, 'b'), nameless(64, 'c');
  actors.NameContainer({.container = worker, .name = "worker", .pod = "train-7", .pod_namespace = "ml"});
  actors.NameContainer({.container = web, .name = "nginx"});
  actors.NameContainer({.container = nameless});
  const auto place = [&](const std::string& cgroup) {
    actors.Ingest({.process = loader, .name = "dd", .cgroup = cgroup});
    return NameActor(actors.ActorOf(loader, {}));
  };
  EXPECT_EQ(place("/kubepods/burstable/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60/" + worker),
            "dd in pod train-7/worker (namespace ml)");
  EXPECT_EQ(place("/docker/" + web), "dd in container nginx");
  EXPECT_EQ(place("/docker/" + nameless), "dd in /docker/" + nameless);
  EXPECT_EQ(place("/batch"), "dd in /batch");
  EXPECT_EQ(place("/"), "dd");
}

TEST(Shares, NameTheProcessIfThereIsOnlyOne) {
  Shares shares;
  const Actor make{.name = "cc1plus", .cgroup = "/batch", .pid = 7, .command = "cc1plus a.cpp"};
  AddShare(shares, make, 1);
  AddShare(shares, make, 2);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(NameActor(shares.begin()->first), "cc1plus (process 7: cc1plus a.cpp) in /batch");
  Actor other = make;
  other.pid = 8;
  AddShare(shares, other, 4);
  AddShare(shares, make, 8);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(NameActor(shares.begin()->first), "cc1plus in /batch");
  EXPECT_EQ(shares.begin()->second, 15);
}

}  // namespace
}  // namespace gpusonde::diagnose
