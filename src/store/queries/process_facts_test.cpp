// SPDX-License-Identifier: Apache-2.0
#include "store/queries/process_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/tables/containers.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

constexpr Id128 kInPod{8, 1}, kOnHost{8, 2}, kWithoutRow{8, 3};

class ProcessFactsQuery : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    const std::string id(64, 'a');
    Add(model::kSources, {{.source = {9, 9}, .host = "node-1"}});
    Add(model::kProcesses, {{.process = kInPod,
                             .source = {9, 9},
                             .pid = 1,
                             .executable = "/app/train",
                             .cgroup = "/kubepods.slice/cri-containerd-" + id + ".scope"},
                            {.process = kOnHost, .source = {9, 9}, .pid = 2, .cgroup = "/system.slice"}});
    Add(model::kContainers,
        {{.container = id, .source = {9, 9}, .name = "main", .pod = "trainer-0", .pod_namespace = "ml"}});
    for (const Id128 process : {kInPod, kOnHost, kWithoutRow, kInPod})
      profile_.threads.push_back({.process = process, .process_name = "", .name = "", .command = ""});
  }

  model::Profile profile_;
};

TEST_F(ProcessFactsQuery, AProcessHasItsContainerAndItsPod) {
  const auto facts = ReadProcessFacts(*store_, profile_);
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->size(), 2u) << "one without a row is absent";
  const model::ProcessFacts& in_pod = facts->at(kInPod);
  EXPECT_EQ(in_pod.host, "node-1");
  EXPECT_EQ(in_pod.executable, "/app/train");
  EXPECT_EQ(in_pod.container, std::string(64, 'a'));
  EXPECT_EQ(in_pod.container_name, "main");
  EXPECT_EQ(in_pod.pod, "trainer-0");
  EXPECT_EQ(in_pod.pod_namespace, "ml");
  EXPECT_EQ(facts->at(kOnHost).container, "");
  EXPECT_EQ(facts->at(kOnHost).host, "node-1");
}

}  // namespace
}  // namespace gpusonde::store
