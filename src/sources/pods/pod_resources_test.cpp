// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sources/pods/testing/message_writer.h"

namespace gpusonde::pods {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Devices(std::string_view resource, std::initializer_list<std::string_view> ids) {
  std::string message = Bytes(1, resource);
  for (const std::string_view id : ids) message += Bytes(2, id);
  return Bytes(2, message + Bytes(3, "\x0a\x02\x08\x01"));  // and where they are
}
std::string Container(std::string_view name, const std::string& devices) {
  return Bytes(3, Bytes(1, name) + devices + Number(3, 7) + Bytes(4, "memory"));
}
std::string Pod(std::string_view name, std::string_view pod_namespace, const std::string& containers) {
  return Bytes(1, Bytes(1, name) + Bytes(2, pod_namespace) + containers);
}
std::string Claim(const std::string& fields) {
  return Bytes(5, Bytes(1, "class") + Bytes(2, "claim") + Bytes(3, "ml") + Bytes(4, fields));
}

PodDevice Of(std::string_view pod, std::string_view container, std::string_view resource,
             std::string_view id) {
  return {.pod_namespace = "ml",
          .pod = std::string(pod),
          .container = std::string(container),
          .resource = std::string(resource),
          .id = std::string(id)};
}

TEST(PodResources, DevicesOfPluginsByContainer) {
  const std::string reply =
      Pod("train-7", "ml",
          Container("worker", Devices("nvidia.com/gpu", {"GPU-b", "GPU-a"}) +
                                  Devices("nvidia.com/hostdev", {"0000:3b:00.0"})) +
              Container("sidecar", "")) +
      Pod("web", "ml", Container("app", Devices("nvidia.com/gpu.shared", {"GPU-c::3", "GPU-c::3"}))) +
      Pod("small", "ml", Container("app", Devices("nvidia.com/mig-1g.10gb", {"MIG-d"})));
  const auto found = ParsePodResources(reply);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->omitted, 0);
  EXPECT_THAT(found->devices, ElementsAre(Of("small", "app", "nvidia.com/mig-1g.10gb", "MIG-d"),
                                          Of("train-7", "worker", "nvidia.com/gpu", "GPU-a"),
                                          Of("train-7", "worker", "nvidia.com/gpu", "GPU-b"),
                                          Of("web", "app", "nvidia.com/gpu.shared", "GPU-c::3")));
}

TEST(PodResources, DynamicResourcesOfOldAndNewKubelets) {
  const std::string old_kubelet = Claim(Bytes(1, Bytes(1, "k8s.gpu.nvidia.com/claim=0f8a-gpu-1")) +
                                        Bytes(1, Bytes(1, "example.com/nic=nic0")));
  const std::string new_kubelet = Claim(Bytes(1, Bytes(1, "k8s.gpu.nvidia.com/claim=0f8a-gpu-2")) +
                                        Bytes(2, "gpu.nvidia.com") + Bytes(3, "node-1") + Bytes(4, "gpu-2"));
  const auto found = ParsePodResources(Pod("p", "ml", Container("c", old_kubelet + new_kubelet)));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->devices, ElementsAre(Of("p", "c", "gpu.nvidia.com", "gpu-2"),
                                          Of("p", "c", "k8s.gpu.nvidia.com/claim", "0f8a-gpu-1")));
}

TEST(PodResources, AnEmptyReplyHasNoDevices) {
  EXPECT_THAT(ParsePodResources("")->devices, IsEmpty());
  EXPECT_THAT(ParsePodResources(Pod("p", "ml", Container("c", "")))->devices, IsEmpty());
}

TEST(PodResources, FieldsOfOtherTypesAreIgnored) {
  const auto found =
      ParsePodResources(Number(1, 5) + Pod("p", "ml", Number(3, 1) + Container("c", Number(2, 9))));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->devices, IsEmpty());
}

TEST(PodResources, WhatIsCutOffIsRefused) {
  const std::string reply = Pod("p", "ml", Container("c", Devices("nvidia.com/gpu", {"GPU-a"})));
  const auto found = ParsePodResources(std::string_view(reply).substr(0, reply.size() - 1));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(ParsePodResources(Bytes(1, Bytes(3, "\xff"))).has_value()) << "inside a message";
}

TEST(PodResources, WhatIsBeyondTheLimitsIsCounted) {
  std::string reply = Pod(std::string(400, 'p'), "ml", Container("c", Devices("nvidia.com/gpu", {"GPU-a"})));
  for (size_t i = 0; i < kMaxPodDevices + 10; ++i)
    reply += Pod("p" + std::to_string(i), "ml", Container("c", Devices("nvidia.com/gpu", {"GPU-a"})));
  const auto found = ParsePodResources(reply);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->devices, SizeIs(kMaxPodDevices));
  EXPECT_EQ(found->omitted, 11);
}

TEST(DeviceName, OfEachWayToNameADevice) {
  EXPECT_EQ(DeviceNameOf("GPU-0f8a").uuid, "GPU-0f8a");
  EXPECT_EQ(DeviceNameOf("GPU-0f8a::3").uuid, "GPU-0f8a");
  EXPECT_EQ(DeviceNameOf("MIG-5d3b").uuid, "MIG-5d3b");
  EXPECT_EQ(DeviceNameOf("MIG-GPU-5d3b/1/0").uuid, "MIG-GPU-5d3b/1/0");
  EXPECT_EQ(DeviceNameOf("0f8a-GPU-5d3b").uuid, "GPU-5d3b");
  EXPECT_EQ(DeviceNameOf("gpu-3").ordinal, 3);
  EXPECT_EQ(DeviceNameOf("0f8a-gpu-12").ordinal, 12);
  EXPECT_EQ(DeviceNameOf("2").ordinal, 2);
  for (const std::string_view id :
       {"gpu-0-mig-1g.10gb-19-0", "0:1", "", "all", "gpu-99999999999", "gpu--1"}) {
    EXPECT_EQ(DeviceNameOf(id).ordinal, std::nullopt) << id;
    EXPECT_EQ(DeviceNameOf(id).uuid, "") << id;
  }
}

}  // namespace
}  // namespace gpusonde::pods
