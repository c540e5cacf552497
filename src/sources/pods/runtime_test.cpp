// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sources/pods/pod_resources.h"
#include "sources/pods/testing/message_writer.h"

namespace gpusonde::pods {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

const std::string kWorker(64, 'a');

std::string Label(uint32_t field, std::string_view name, std::string_view value) {
  return Bytes(field, Bytes(1, name) + Bytes(2, value));
}
std::string Sandbox(std::string_view id, std::string_view name, const std::string& labels) {
  return Bytes(1, Bytes(1, id) + Bytes(2, Bytes(1, name) + Bytes(2, "0f8a") + Bytes(3, "ml") + Number(4, 1)) +
                      Number(3, 0) + Number(4, 1'700'000'000) + labels);
}
std::string ContainerOf(std::string_view id, std::string_view sandbox, std::string_view name,
                        const std::string& labels) {
  return Bytes(1, Bytes(1, id) + Bytes(2, sandbox) + Bytes(3, Bytes(1, name)) + Number(6, 1) + labels);
}

TEST(Runtime, ContainersHaveThePodOfTheirSandbox) {
  const std::vector<std::string> wanted = {"app", "team"};
  const auto found = ParseContainers(
      Sandbox("s1", "train-7",
              Label(5, "team", "vision") + Label(5, "secret", "x") + Label(5, "app", "train")),
      ContainerOf(kWorker, "s1", "worker", Label(8, "io.kubernetes.pod.name", "not asked")), wanted);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_THAT(found->by_id, SizeIs(1));
  const PodContainer& worker = found->by_id.at(kWorker);
  EXPECT_EQ(worker.name, "worker");
  EXPECT_EQ(worker.pod, "train-7");
  EXPECT_EQ(worker.pod_namespace, "ml");
  EXPECT_EQ(worker.pod_uid, "0f8a");
  EXPECT_THAT(worker.labels, ElementsAre(Pair("app", "train"), Pair("team", "vision")));
}

TEST(Runtime, WithoutASandboxTheLabelsOfKubeletName) {
  const auto found = ParseContainers(
      "",
      ContainerOf(
          kWorker, "gone", "",
          Label(8, "io.kubernetes.container.name", "worker") + Label(8, "io.kubernetes.pod.name", "train-7") +
              Label(8, "io.kubernetes.pod.namespace", "ml") + Label(8, "io.kubernetes.pod.uid", "0f8a")),
      {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->by_id.at(kWorker), (PodContainer{"worker", "train-7", "ml", "0f8a", {}}));
}

TEST(Runtime, APodHasEndedWhenAllOfItsSandboxesHaveStopped) {
  const auto sandbox = [](std::string_view id, std::string_view pod, uint64_t state) {
    return Bytes(1, Bytes(1, id) + Bytes(2, Bytes(1, pod) + Bytes(3, "ml")) + Number(3, state));
  };
  const std::string runs = Bytes(1, Bytes(1, "s5") + Bytes(2, Bytes(1, "runs") + Bytes(3, "ml")));
  const auto found = ParseContainers(sandbox("s1", "done", 1) + sandbox("s2", "done", 1) +
                                         sandbox("s3", "restarted", 1) + sandbox("s4", "restarted", 0) + runs,
                                     "", {});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_THAT(found->ended_pods, ElementsAre(Pair("ml", "done")));
}

TEST(Runtime, ALabelMayHaveAnyBytes) {
  const std::vector<std::string> wanted = {"app"};
  const auto found = ParseContainers(Sandbox("s1", "p", Label(5, "app", "two\nlines\xff")),
                                     ContainerOf(kWorker, "s1", "c", ""), wanted);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->by_id.at(kWorker).labels, ElementsAre(Pair("app", "two\nlines\xff")));
}

TEST(Runtime, WhatIsBeyondTheLimitsIsCounted) {
  std::string containers, sandboxes;
  for (size_t i = 0; i < kMaxPodContainers + 3; ++i) {
    sandboxes += Sandbox("s" + std::to_string(i), "p", "");
    containers += ContainerOf("c" + std::to_string(i), "s0", "c", "");
  }
  sandboxes += Sandbox("long", std::string(kMaxNameBytes + 1, 'p'), "");
  const auto found = ParseContainers(sandboxes, containers, {});
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->by_id, SizeIs(kMaxPodContainers));
  EXPECT_EQ(found->omitted, 3 + 3 + 1);
}

TEST(Runtime, WhatIsCutOffIsRefused) {
  const std::string containers = ContainerOf(kWorker, "s1", "worker", "");
  const auto found = ParseContainers("", std::string_view(containers).substr(0, 30), {});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::pods
