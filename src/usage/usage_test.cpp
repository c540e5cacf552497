// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/containers.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/pod_devices.h"
#include "model/tables/pod_labels.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::usage {
namespace {

using testing::Contains;
using testing::ElementsAre;

const std::string kTrainerContainer(64, 'a'), kSidecar(64, 'b'), kNameless(64, 'c');
const std::string kPod = "/kubepods/burstable/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60/";

// Five processes that ran work for one second each on GPU 0, one after the other, and end with the run.
class UsageTest : public store::MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources,
        {{.source = {9, 9}, .host = "node-1", .cpus = 2, .started_ns = 0, .ended_ns = 100 * kSecond}});
    Add(model::kDevices, {{.device = {6, 0}, .ordinal = 0, .uuid = "GPU-0", .name = "NVIDIA X"}});
    Add(model::kContainers,
        {{.container = kTrainerContainer, .name = "worker", .pod = "trainer-0", .pod_namespace = "ml"},
         {.container = kSidecar, .name = "sidecar", .pod = "trainer-0", .pod_namespace = "ml"}});
    Process(1, kPod + kTrainerContainer, "python3 /app/train.py");
    Process(2, kPod + kSidecar, "/usr/bin/monitor");
    Process(3, "/slurm/uid_7/job_4711/step_0", "python3 -m torch.distributed.run");
    Process(4, "/docker/" + kNameless, "server");
    Process(5, "/user.slice/user-1000.slice/user@1000.service/app.slice", "jupyter");
  }
  void Process(uint64_t number, const std::string& cgroup, const std::string& command,
               std::optional<int32_t> user_id = 1000) {
    const Id128 id{5, number};
    const auto at = static_cast<int64_t>(number) * kSecond;
    Add(model::kProcesses, {{.process = id,
                             .source = {9, 9},
                             .pid = static_cast<int32_t>(number),
                             .name = "p",
                             .command = command,
                             .cgroup = cgroup,
                             .user_id = user_id,
                             .exited_ns = at + kSecond}});
    Add(model::kGpuSessions, {{.process = id, .session = 1, .start_ns = 1}});
    Add(model::kKernels, {{.process = id,
                           .device = {6, 0},
                           .session = 1,
                           .start_ns = at,
                           .end_ns = at + kSecond / static_cast<int64_t>(number),
                           .name = "k"}});
  }
  std::vector<std::string> Names(const SumBy& by) {
    const auto usage = ReadUsage(*store_, {.filter = {}}, by);
    EXPECT_TRUE(usage.has_value()) << usage.error().message;
    std::vector<std::string> names;
    for (const Group& group : usage->groups) names.push_back(group.name);
    return names;
  }
};

TEST_F(UsageTest, OwnersArePodsJobsContainersAndUsers) {
  EXPECT_THAT(Names({By::kOwner}),
              ElementsAre("pod ml/trainer-0", "container cccccccccccc", "job 4711", "user 1000"))
      << "the largest first, equal ones by name";
}

TEST_F(UsageTest, TheUserOfATraceIsUnknown) {
  Process(6, "", "trace.json.gz", std::nullopt);
  EXPECT_THAT(Names({By::kOwner}), Contains("unknown user"));
  EXPECT_THAT(Names({By::kUser}), ElementsAre("1000", ""));
}

TEST_F(UsageTest, LongNamesAreNotCutWithinACharacter) {
  const std::string most(255, 'x');
  Process(6, "", most + "\u00e9 --fast");
  EXPECT_THAT(Names({By::kApplication}), Contains(most));
}

TEST_F(UsageTest, EachWayToSumUp) {
  EXPECT_THAT(Names({By::kPod}), ElementsAre("", "ml/trainer-0"));
  EXPECT_THAT(Names({By::kContainer}),
              ElementsAre("", "cccccccccccc", "ml/trainer-0/sidecar", "ml/trainer-0/worker"));
  EXPECT_THAT(Names({By::kJob}), ElementsAre("", "4711"));
  EXPECT_THAT(Names({By::kService}), ElementsAre("", "user@1000.service"));
  EXPECT_THAT(Names({By::kUser}), ElementsAre("1000"));
  EXPECT_THAT(Names({By::kApplication}),
              ElementsAre("jupyter", "monitor", "server", "torch.distributed.run", "train.py"));
  EXPECT_THAT(Names({By::kDevice}), ElementsAre("GPU 0 NVIDIA X GPU-0"));
  EXPECT_THAT(Names({By::kHost}), ElementsAre("node-1"));
  EXPECT_EQ(Names({By::kProcess}).front(), "jupyter (5)");
}

TEST_F(UsageTest, LabelsAndNamespacesOfPods) {
  Add(model::kPodLabels, {{.container = kTrainerContainer, .name = "team", .value = "vision"},
                          {.container = kTrainerContainer, .name = "app", .value = "train"},
                          {.container = kSidecar, .name = "team", .value = "vision"}});
  EXPECT_THAT(Names({By::kNamespace}), ElementsAre("", "ml"));
  EXPECT_THAT(Names({By::kLabel, "team"}), ElementsAre("", "vision"));
  EXPECT_THAT(Names({By::kLabel, "app"}), ElementsAre("", "train")) << "the sidecar has none";
  EXPECT_THAT(Names({By::kLabel, "other"}), ElementsAre(""));
  EXPECT_THAT(ReadUsage(*store_, {.filter = {}}, {By::kOwner})->labels, ElementsAre("app", "team"));
}

TEST_F(UsageTest, WhatAPodHasAllocatedWithoutAProcessIsIdle) {
  Add(model::kDevices, {{.device = {6, 1}, .ordinal = 1, .uuid = "GPU-1", .name = "NVIDIA X"}});
  const auto allocated = [](uint64_t number, Id128 device, std::string pod, int64_t from_s,
                            std::optional<int64_t> to_s) {
    return model::PodDevice{.allocation = {7, number},
                            .source = {9, 9},
                            .device = device,
                            .device_name = "GPU-1",
                            .resource = "nvidia.com/gpu",
                            .pod = std::move(pod),
                            .pod_namespace = "ml",
                            .container = "worker",
                            .start_ns = from_s * kSecond,
                            .end_ns = to_s.transform([](int64_t seconds) { return seconds * kSecond; })};
  };
  Add(model::kPodDevices,
      {allocated(1, {6, 1}, "notebook-0", 40, std::nullopt), allocated(2, {6, 0}, "trainer-0", 0, 50)});
  const Usage usage = ReadUsage(*store_, {.filter = {}}, {By::kOwner}).value();
  ASSERT_EQ(usage.groups.at(0).name, "pod ml/notebook-0");
  EXPECT_EQ(usage.groups[0].processes.size(), 0u);
  EXPECT_NEAR(usage.groups[0].use.idle_ns, 60e9, 1) << "until the run's end";
  EXPECT_NEAR(usage.groups[0].without_process_ns, 60e9, 1);
  // Its processes hold the device from 1 s to 3 s, three others for a second each.
  ASSERT_EQ(usage.groups.at(1).name, "pod ml/trainer-0");
  EXPECT_EQ(usage.groups[1].processes.size(), 2u);
  EXPECT_NEAR(AccountableNs(usage.groups[1].use) + AccountableNs(usage.groups[2].use) +
                  AccountableNs(usage.groups[3].use) + AccountableNs(usage.groups[4].use),
              50e9, 1)
      << "the device's time counts once";
  EXPECT_LT(usage.groups[1].without_process_ns, 48e9);
  EXPECT_THAT(Names({By::kContainer}), testing::Contains("ml/notebook-0/worker"));
  EXPECT_THAT(Names({By::kProcess}), testing::Contains("no process"));
  EXPECT_THAT(Names({By::kNamespace}).front(), "ml");
}

TEST(SumBy, Names) {
  EXPECT_EQ(NameOf(FindBy("namespace").value()), "namespace");
  EXPECT_EQ(NameOf(FindBy("label:team").value()), "label:team");
  EXPECT_EQ(NameOf(FindBy("label:app.kubernetes.io/name").value()), "label:app.kubernetes.io/name");
  for (const std::string_view none : {"", "label", "label:", "labels", "Pod"})
    EXPECT_FALSE(FindBy(none)) << none;
  for (const std::string_view name : kByNames) EXPECT_EQ(NameOf(FindBy(name).value()), name);
}

TEST_F(UsageTest, MigInstancesAreNoGpusOfTheirOwn) {
  Add(model::kDevices, {{.device = {6, 1},
                         .ordinal = 0,
                         .uuid = "MIG-1",
                         .name = "NVIDIA X MIG 1g.10gb (instance 1/0)",
                         .parent = Id128{6, 0}}});
  EXPECT_EQ(ReadUsage(*store_, {.filter = {}}, {By::kOwner}).value().devices.size(), 1u);
}

TEST_F(UsageTest, GroupsSumToTheTotal) {
  const Usage usage = ReadUsage(*store_, {.filter = {}}, {By::kOwner}).value();
  const Group total = usage.Total();
  EXPECT_EQ(total.processes.size(), 5u);
  EXPECT_EQ(total.devices.size(), 1u);
  EXPECT_NEAR(AccountableNs(total.use), 5e9, 1);
  EXPECT_NEAR(total.use.busy_ns, (1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0) * 1e9, 10);
  EXPECT_NEAR(usage.groups[0].use.busy_ns, 1.5e9, 1) << "both containers of the pod";
}

TEST_F(UsageTest, HostsAddUp) {
  const Usage one = ReadUsage(*store_, {.filter = {}}, {By::kHost}).value();
  Usage other = one;
  other.groups[0].name = "node-2";
  const Usage two = Merge({one, other});
  EXPECT_EQ(two.groups.size(), 2u);
  EXPECT_NEAR(AccountableNs(two.Total().use), 10e9, 1);
  const Usage same = Merge({one, one, Usage{.by = {By::kHost}}});
  EXPECT_EQ(same.groups.size(), 1u);
  EXPECT_EQ(same.range.to_ns, 100 * kSecond);
}

TEST(Application, IsWhatTheUserStarted) {
  EXPECT_EQ(ApplicationOf("python3", "python3 -u /data/train.py --lr 1"), "train.py");
  EXPECT_EQ(ApplicationOf("python3.11", "/usr/bin/python3.11 -m vllm.entrypoints.openai"),
            "vllm.entrypoints.openai");
  EXPECT_EQ(ApplicationOf("python3", "python3 -c import torch"), "python3");
  EXPECT_EQ(ApplicationOf("python3", "python3"), "python3");
  EXPECT_EQ(ApplicationOf("ollama", "/usr/bin/ollama serve"), "ollama");
  EXPECT_EQ(ApplicationOf("pythonic", "/usr/bin/pythonic x"), "pythonic");
  EXPECT_EQ(ApplicationOf("kthread", ""), "kthread");
}

}  // namespace
}  // namespace gpusonde::usage
