// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usage_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/batches.h"
#include "model/tables/containers.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/metrics.h"
#include "model/tables/pod_devices.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using testing::DoubleEq;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

// A run of 100 s; each test puts work there.
class UsageQuery : public MemoryStoreTest {
 protected:
  static constexpr Id128 kTrainer{5, 1}, kNotebook{5, 2}, kGpu0{6, 0}, kGpu1{6, 1};

  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources,
        {{.source = {9, 9}, .host = "here", .cpus = 2, .started_ns = 0, .ended_ns = 100 * kSecond}});
    Add(model::kDevices, {{.device = kGpu1, .ordinal = 1, .uuid = "GPU-1", .name = "NVIDIA X"},
                          {.device = kGpu0, .ordinal = 0, .uuid = "GPU-0", .name = "NVIDIA X"}});
    Add(model::kProcesses,
        {{.process = kTrainer,
          .source = {9, 9},
          .pid = 100,
          .name = "python3",
          .cgroup = "/slurm/job_7",
          .user_id = 1000,
          .started_ns = 1 * kSecond,
          .exited_ns = 80 * kSecond},
         {.process = kNotebook, .source = {9, 9}, .pid = 200, .name = "jupyter", .started_ns = 1 * kSecond}});
  }
  void Observe(Id128 process, int64_t from_ns, std::optional<int64_t> to_ns, int32_t session = 1) {
    Add(model::kGpuSessions,
        {{.process = process, .session = session, .start_ns = from_ns, .end_ns = to_ns}});
  }
  void Work(Id128 process, int64_t from_ns, int64_t to_ns, Id128 device = Id128{6, 0}) {
    Add(model::kKernels, {{.process = process,
                           .device = device,
                           .session = 1,
                           .stream = 7,
                           .start_ns = from_ns,
                           .end_ns = to_ns,
                           .name = "k"}});
  }
  void Memory(Id128 process, int64_t time_ns, double bytes, Id128 device = Id128{6, 0}) {
    Add(model::kMetrics, {{.time_ns = time_ns,
                           .source = {9, 9},
                           .device = device,
                           .process = process,
                           .metric = "gpu.process.memory.used",
                           .value = bytes}});
  }
  void Allocate(std::string pod, int64_t from_ns, std::optional<int64_t> to_ns, Id128 device = Id128{6, 0},
                uint64_t number = 1) {
    Add(model::kPodDevices, {{.allocation = {7, number},
                              .source = {9, 9},
                              .device = device,
                              .device_name = "GPU-0::1",
                              .resource = "nvidia.com/gpu",
                              .pod = std::move(pod),
                              .pod_namespace = "ml",
                              .container = "worker",
                              .start_ns = from_ns,
                              .end_ns = to_ns}});
  }
  // In a container that nothing names if the pod is empty.
  void RunInPod(Id128 process, char container, const std::string& pod) {
    Add(model::kProcesses, {{.process = process,
                             .source = {9, 9},
                             .pid = 300 + container,
                             .name = "python3",
                             .cgroup = "/kubepods/besteffort/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60/" +
                                       std::string(64, container),
                             .started_ns = 1 * kSecond,
                             .exited_ns = 80 * kSecond}});
    if (!pod.empty())
      Add(model::kContainers,
          {{.container = std::string(64, container), .name = "c", .pod = pod, .pod_namespace = "ml"}});
  }
  GpuUsage Read(const model::Selection& selection = {.filter = {}}) {
    auto usage = ReadGpuUsage(*store_, selection);
    EXPECT_TRUE(usage.has_value()) << usage.error().message;
    return std::move(usage).value_or(GpuUsage{});
  }
};

TEST_F(UsageQuery, AProcessHoldsADeviceUntilItEnds) {
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 12 * kSecond);
  Work(kTrainer, 11 * kSecond, 20 * kSecond);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  const DeviceHolder& holder = usage.holders[0];
  EXPECT_EQ(holder.device, kGpu0);
  EXPECT_EQ(holder.pid, 100);
  EXPECT_EQ(holder.cgroup, "/slurm/job_7");
  EXPECT_EQ(holder.user_id, 1000);
  EXPECT_EQ(holder.use.held_ns, 70 * kSecond);
  EXPECT_DOUBLE_EQ(holder.use.busy_ns, 10 * kSecond);
  EXPECT_DOUBLE_EQ(holder.use.idle_ns, 60 * kSecond);
  EXPECT_DOUBLE_EQ(holder.use.unobserved_ns, 0);
  EXPECT_THAT(usage.devices, SizeIs(2)) << "also those that nobody held";
}

TEST_F(UsageQuery, CopiesCountAndTheTimeRangeCuts) {
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 20 * kSecond);
  Add(model::kMemcpys, {{.process = kTrainer,
                         .device = kGpu0,
                         .session = 1,
                         .stream = 7,
                         .start_ns = 30 * kSecond,
                         .end_ns = 32 * kSecond}});
  const GpuUsage usage = Read({.from_ns = 15 * kSecond, .to_ns = 31 * kSecond, .filter = {}});
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_EQ(usage.holders[0].use.held_ns, 16 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 6 * kSecond);
}

TEST_F(UsageQuery, MemoryOnADeviceHoldsIt) {
  Memory(kNotebook, 20 * kSecond, 1e9);
  Memory(kNotebook, 10 * kSecond, 0);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_EQ(usage.holders[0].use.held_ns, 80 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.unobserved_ns, 80 * kSecond) << "it was not profiled";
}

TEST_F(UsageQuery, TwoProcessesShareADevice) {
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Observe(kNotebook, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 30 * kSecond);
  Work(kNotebook, 20 * kSecond, 40 * kSecond);
  Work(kNotebook, 50 * kSecond, 60 * kSecond, kGpu1);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(3));
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 15 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[1].use.busy_ns, 15 * kSecond);
  EXPECT_EQ(usage.holders[2].device, kGpu1);
  EXPECT_DOUBLE_EQ(usage.holders[2].use.busy_ns, 10 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[2].use.idle_ns, 40 * kSecond);
  // Whole: 10 s to 100 s, held by both until 80 s.
  EXPECT_DOUBLE_EQ(usage.holders[0].use.idle_ns, 20 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[1].use.idle_ns, 40 * kSecond);
}

// So that the parts of adjacent times sum up to the whole: the part after its end doesn't know the process.
TEST_F(UsageQuery, WorkAfterItsProcessHasEndedIsNobodys) {
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Observe(kNotebook, 5 * kSecond, std::nullopt);
  Work(kTrainer, 70 * kSecond, 90 * kSecond);
  Work(kNotebook, 10 * kSecond, 11 * kSecond);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(2));
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 10 * kSecond) << "it ended at 80 s";
  EXPECT_DOUBLE_EQ(usage.holders[1].use.idle_ns, 59.0 * kSecond + 20 * kSecond);
}

TEST_F(UsageQuery, TimeBetweenRunsCountsForNobody) {
  Add(model::kSources, {{.source = {9, 8},
                         .host = "here",
                         .cpus = 2,
                         .started_ns = 200 * kSecond,
                         .ended_ns = 300 * kSecond}});
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Observe(kNotebook, 5 * kSecond, std::nullopt);
  Work(kNotebook, 10 * kSecond, 20 * kSecond);
  EXPECT_EQ(Read().holders.at(0).use.held_ns, 90 * kSecond) << "nobody saw it in the second run";
  Work(kNotebook, 250 * kSecond, 260 * kSecond);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_EQ(usage.holders[0].use.held_ns, 190 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 20 * kSecond);
}

TEST_F(UsageQuery, TheUnobservedPartIsNotIdle) {
  Observe(kTrainer, 10 * kSecond, 30 * kSecond);
  Observe(kTrainer, 60 * kSecond, 70 * kSecond, 2);
  Work(kTrainer, 10 * kSecond, 25 * kSecond);
  Work(kTrainer, 60 * kSecond, 61 * kSecond);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 16 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.idle_ns, 14 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.unobserved_ns, 40 * kSecond);
}

TEST_F(UsageQuery, NvmlsFigureIsTheMeanOfItsReadings) {
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 20 * kSecond);
  for (const double percent : {20.0, 40.0})
    Add(model::kMetrics, {{.time_ns = 15 * kSecond,
                           .source = {9, 9},
                           .device = kGpu0,
                           .process = kTrainer,
                           .metric = "gpu.process.utilization",
                           .value = percent}});
  EXPECT_THAT(Read().holders.at(0).sampled_utilization, Optional(DoubleEq(0.3)));
}

TEST_F(UsageQuery, APodHoldsWhatItHasAllocatedWhileNoProcessOfItDoes) {
  RunInPod(kTrainer, 'a', "train-7");
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 20 * kSecond);
  Allocate("train-7", 2 * kSecond, 90 * kSecond);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(2));
  EXPECT_EQ(usage.holders[0].use.held_ns, 70 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 10 * kSecond) << "beside nobody";
  EXPECT_EQ(usage.holders[0].without_process, std::nullopt);
  const DeviceHolder& pod = usage.holders[1];
  EXPECT_EQ(pod.without_process, (HolderPod{"ml", "train-7", "worker"}));
  EXPECT_EQ(pod.host, "here");
  EXPECT_DOUBLE_EQ(pod.use.idle_ns, 18 * kSecond) << "before and after the process";
  EXPECT_DOUBLE_EQ(pod.use.busy_ns + pod.use.unobserved_ns, 0);
}

TEST_F(UsageQuery, AnAllocationWithoutAnEndLastsAsLongAsTheRunThatSawIt) {
  Add(model::kSources, {{.source = {9, 8},
                         .host = "here",
                         .cpus = 2,
                         .started_ns = 200 * kSecond,
                         .ended_ns = 300 * kSecond}});
  Allocate("idle", 40 * kSecond, std::nullopt);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_DOUBLE_EQ(usage.holders[0].use.idle_ns, 60 * kSecond);
  EXPECT_EQ(usage.devices.at(0).device, kGpu0);
  EXPECT_DOUBLE_EQ(
      Read({.from_ns = 50 * kSecond, .to_ns = 60 * kSecond, .filter = {}}).holders.at(0).use.idle_ns,
      10 * kSecond);
}

TEST_F(UsageQuery, NobodyHoldsADeviceAfterTheEndOfTheLastRun) {
  Memory(kNotebook, 20 * kSecond, 1e9);
  Allocate("idle", 40 * kSecond, std::nullopt, kGpu1);
  const GpuUsage usage = Read({.from_ns = 0, .to_ns = 500 * kSecond, .filter = {}});
  ASSERT_THAT(usage.holders, SizeIs(2));
  EXPECT_EQ(usage.holders[0].use.held_ns, 80 * kSecond);
  EXPECT_EQ(usage.holders[1].use.held_ns, 60 * kSecond);
}

TEST_F(UsageQuery, ASilentHostHoldsNothingWhileOthersSend) {
  constexpr Id128 kSilent{5, 3};
  Add(model::kSources, {{.source = {9, 7}, .host = "silent", .cpus = 2, .started_ns = 0}});
  Add(model::kProcesses, {{.process = kSilent, .source = {9, 7}, .pid = 300, .started_ns = 1 * kSecond}});
  Add(model::kBatches, {{.spool = {1, 1}, .sequence = 1, .rows = 1, .committed_ns = 90 * kSecond}});
  Add(model::kSamples, {{.time_ns = 30 * kSecond, .process = kSilent, .tid = 300}});
  Memory(kSilent, 20 * kSecond, 1e9);
  for (const int64_t to_ns : {100 * kSecond, 500 * kSecond}) {
    const GpuUsage usage = Read({.from_ns = 0, .to_ns = to_ns, .filter = {}});
    ASSERT_THAT(usage.holders, SizeIs(1));
    EXPECT_EQ(usage.holders[0].use.held_ns, 10 * kSecond) << "until its last sample";
  }
}

TEST_F(UsageQuery, PodsInTimeSlicesShareTheDevice) {
  RunInPod(kTrainer, 'a', "train-7");
  Observe(kTrainer, 1 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 20 * kSecond);
  Allocate("train-7", 0, 50 * kSecond);
  Allocate("idle", 0, 50 * kSecond, kGpu0, 2);
  const GpuUsage usage = Read({.from_ns = 10 * kSecond, .to_ns = 30 * kSecond, .filter = {}});
  ASSERT_THAT(usage.holders, SizeIs(2));
  EXPECT_DOUBLE_EQ(usage.holders[0].use.busy_ns, 10 * kSecond);
  EXPECT_DOUBLE_EQ(usage.holders[0].use.idle_ns, 5 * kSecond);
  EXPECT_EQ(usage.holders[1].without_process->pod, "idle");
  EXPECT_DOUBLE_EQ(usage.holders[1].use.idle_ns, 5 * kSecond);
}

TEST_F(UsageQuery, AProcessInAPodWithoutANameMayBeThePods) {
  RunInPod(kTrainer, 'a', "");
  Observe(kTrainer, 5 * kSecond, std::nullopt);
  Work(kTrainer, 10 * kSecond, 20 * kSecond);
  Allocate("train-7", 10 * kSecond, 50 * kSecond);
  EXPECT_THAT(Read().holders, SizeIs(1)) << "else its time would count twice";
}

TEST_F(UsageQuery, AllocatedPartsOfDevicesAreLeftOut) {
  Allocate("small", 0, std::nullopt, Id128{6, 77});
  EXPECT_THAT(Read().holders, IsEmpty());
}

TEST_F(UsageQuery, NothingIsNoError) {
  EXPECT_THAT(Read().holders, IsEmpty());
  EXPECT_THAT(Read({.from_ns = 7, .to_ns = 7, .filter = {}}).holders, IsEmpty());
}

TEST_F(UsageQuery, HostileTimesAreBounded) {
  Observe(kTrainer, 1, std::numeric_limits<int64_t>::max());
  Work(kTrainer, 0, std::numeric_limits<int64_t>::max());
  Work(kTrainer, std::numeric_limits<int64_t>::min(), 5 * kSecond);
  Memory(kTrainer, std::numeric_limits<int64_t>::max() - 1, 1e300);
  const GpuUsage usage = Read();
  ASSERT_THAT(usage.holders, SizeIs(1));
  EXPECT_EQ(usage.holders[0].use.held_ns, 79 * kSecond) << "from its start to its end";
  Allocate("a", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  Allocate("b", std::numeric_limits<int64_t>::max() - 1, std::numeric_limits<int64_t>::min(), kGpu1, 2);
  const GpuUsage allocated = Read();
  ASSERT_THAT(allocated.holders, SizeIs(2));
  EXPECT_EQ(allocated.holders[1].use.held_ns, 100 * kSecond) << "the whole run";
}

}  // namespace
}  // namespace gpusonde::store
