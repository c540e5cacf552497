// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/rows_testing.h"

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;

constexpr Id128 kGpuProcess{7, 7};
constexpr int64_t kGpuClockOffset = 1'000'000;

class GpuRowsTest : public testing::Test {
 protected:
  template <class What>
  void Ingest(const What& what, uint32_t session = 1, std::optional<Id128> stack = std::nullopt) {
    cupti::Event event{.pid = 42, .tid = 43, .session = session};
    event.what = what;
    gpu_.Ingest(event, kGpuProcess, stack);
  }
  static cupti::Kernel Kernel(std::string_view name, int64_t start_ns, int64_t end_ns) {
    cupti::Kernel kernel;
    kernel.name = name;
    kernel.correlation = 5;
    kernel.start_ns = start_ns;
    kernel.end_ns = end_ns;
    return kernel;
  }
  static cupti::Device H100() {
    cupti::Device device;
    device.uuid[0] = 0xab;
    device.uuid[15] = 0x01;
    device.name = "NVIDIA H100";
    device.sm_count = 132;
    return device;
  }
  static cupti::Total KernelTotal(std::string_view name, uint64_t count, uint64_t total_ns,
                                  uint64_t untimed = 0) {
    return {.of = cupti::Total::Of::kKernel,
            .name = name,
            .count = count,
            .untimed = untimed,
            .total_ns = total_ns};
  }

  Rows rows_;
  model::DropCounts drops_;
  GpuRows gpu_{{.source = {1, 1}, .host = "here", .epoch_offset_ns = kGpuClockOffset}, rows_, drops_};
};

TEST_F(GpuRowsTest, KernelsHaveTheirDeviceAndTimesSinceTheEpoch) {
  Ingest(H100());
  Ingest(Kernel("gemm", 100, 250));
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "devices", "uuid"),
              ElementsAre("GPU-ab000000-0000-0000-0000-000000000001"));
  EXPECT_THAT(TextColumn(batches, "kernels", "name"), ElementsAre("gemm"));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernels", "start_ns"), ElementsAre(100 + kGpuClockOffset));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernels", "end_ns"), ElementsAre(250 + kGpuClockOffset));
  EXPECT_EQ(FixedColumn<Id128>(batches, "kernels", "device"),
            FixedColumn<Id128>(batches, "devices", "device"));
}

TEST_F(GpuRowsTest, TheProfilingOverheadIsMetricsOfTheProcess) {
  Ingest(cupti::Overhead{.time_ns = 100, .pairs = 3, .budget = 0.005, .spent = 0.0025});
  std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "metrics", "metric"), ElementsAre("listening.budget", "listening.spent"));
  EXPECT_THAT(FixedColumn<double>(batches, "metrics", "value"), ElementsAre(0.5, 0.25));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "metrics", "time_ns"),
              ElementsAre(100 + kGpuClockOffset, 100 + kGpuClockOffset));
  EXPECT_THAT(FixedColumn<Id128>(batches, "metrics", "process"), ElementsAre(kGpuProcess, kGpuProcess));
  Ingest(cupti::Overhead{
      .budget = 0.005, .spent = 0.005, .known = true, .cost = 0.5, .cost_low = -0.25, .cost_high = 1});
  batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "metrics", "metric"),
              ElementsAre("listening.budget", "listening.spent", "listening.cost", "listening.cost.high",
                          "listening.cost.low"));
  EXPECT_THAT(FixedColumn<double>(batches, "metrics", "value"), ElementsAre(0.5, 0.5, 50, 100, -25));
}

TEST_F(GpuRowsTest, ADeviceIsWrittenOnceAndAgainForANewStore) {
  Ingest(H100());
  Ingest(H100(), 2);
  EXPECT_EQ(TextColumn(rows_.Take(), "devices", "name").size(), 1u);
  gpu_.Rewrite();
  EXPECT_THAT(TextColumn(rows_.Take(), "devices", "name"), ElementsAre("NVIDIA H100"));
}

TEST_F(GpuRowsTest, OnlyADeviceNamedBySimgpuIsSimulated) {
  Ingest(H100());
  cupti::Device other = H100();
  other.uuid[3] = 9;
  other.name = "Simulated H100 80GB HBM3";
  Ingest(other);
  EXPECT_THAT(FixedColumn<uint8_t>(rows_.Take(), "devices", "simulated"), ElementsAre(0, 1));
}

TEST_F(GpuRowsTest, WhatTheTotalsHoldAndNoRecordShowedIsKeptAsASum) {
  Ingest(cupti::SessionBegin{.begin_ns = 50});
  Ingest(Kernel("gemm", 100, 150));
  Ingest(Kernel("gemm", 200, 250));
  Ingest(KernelTotal("gemm", 2, 100));
  Ingest(KernelTotal("gemm", 5, 400));  // replaces the one before
  Ingest(KernelTotal("relu", 3, 30, 1));
  EXPECT_EQ(FindColumn(rows_.Take(), "kernel_windows", "name"), nullptr) << "they may still come";
  gpu_.Finish(kGpuProcess);
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "kernel_windows", "name"), ElementsAre("gemm", "relu"));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_windows", "count"), ElementsAre(3, 2));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_windows", "duration_ns"), ElementsAre(300, 30));
  EXPECT_THAT(FindColumn(batches, "kernel_windows", "stack")->valid, ElementsAre(0, 0));
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuRecordsSummed), 5);
}

TEST_F(GpuRowsTest, WorkFromBeforeASessionWasJoinedIsNotMissing) {
  Ingest(cupti::SessionBegin{.begin_ns = 50, .joined = true});
  Ingest(Kernel("gemm", 100, 150));
  cupti::Total earlier = KernelTotal("gemm", 11, 1050);  // this one among them
  earlier.joined = true;
  Ingest(earlier);
  Ingest(Kernel("gemm", 200, 250));
  Ingest(KernelTotal("gemm", 13, 1150));
  gpu_.FinishAll();
  EXPECT_THAT(FixedColumn<int64_t>(rows_.Take(), "kernel_windows", "count"), ElementsAre(1))
      << "the thirteenth";
}

TEST_F(GpuRowsTest, ASessionThatIsReportedAgainKeepsItsStart) {
  Ingest(cupti::SessionBegin{.begin_ns = 50});
  Ingest(cupti::SessionBegin{.begin_ns = 80, .joined = true});
  EXPECT_THAT(FixedColumn<int64_t>(rows_.Take(), "gpu_sessions", "start_ns"),
              ElementsAre(50 + kGpuClockOffset));
}

TEST_F(GpuRowsTest, CallsWhoseWorkWasNotReportedBeforeTheEndAreCounted) {
  const auto call = [this](uint32_t correlation, double probability, int32_t result = 0) {
    Ingest(cupti::Call{.correlation = correlation, .probability = probability, .name = "", .result = result});
  };
  const auto end = [this] {
    gpu_.Finish(kGpuProcess);
    return drops_.Take().Of(model::DropReason::kGpuWorkUnreported);
  };
  call(4, 1);
  cupti::Kernel kernel = Kernel("gemm", 100, 150);
  kernel.correlation = 5;
  Ingest(kernel);
  call(5, 1);
  call(6, 0.25);
  call(7, 1, 700);  // it failed
  call(8, 1);
  EXPECT_EQ(end(), 5);
  call(0x90000000, 1);
  EXPECT_EQ(end(), 1) << "nothing was reported at all";
  call(9, 1);
  Ingest(cupti::SessionEnd{.end_ns = 900});
  EXPECT_EQ(end(), 0) << "an orderly end means that everything was reported";
}

TEST_F(GpuRowsTest, NothingIsSummedWhenEveryRecordArrived) {
  Ingest(Kernel("gemm", 100, 150));
  Ingest(KernelTotal("gemm", 1, 50));
  gpu_.FinishAll();
  EXPECT_EQ(FindColumn(rows_.Take(), "kernel_windows", "name"), nullptr);
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuRecordsSummed), 0);
}

TEST_F(GpuRowsTest, ANewSessionFinishesTheOneBefore) {
  Ingest(KernelTotal("gemm", 4, 40), 1);
  Ingest(cupti::SessionBegin{.begin_ns = 500}, 2);
  EXPECT_THAT(FixedColumn<int64_t>(rows_.Take(), "kernel_windows", "count"), ElementsAre(4));
  Ingest(Kernel("gemm", 100, 110),
         1);  // late, of the first session: a row of it, not in the sums of the second
  Ingest(KernelTotal("gemm", 1, 10), 2);
  gpu_.FinishAll();
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(FixedColumn<int32_t>(batches, "kernels", "session"), ElementsAre(1));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_windows", "count"), ElementsAre(1));
}

TEST_F(GpuRowsTest, ASessionWhoseBeginWasNotReceivedStartsWithItsFirstWork) {
  Ingest(Kernel("gemm", 300, 350));
  Ingest(Kernel("gemm", 100, 150));
  Ingest(cupti::SessionEnd{.end_ns = 900});
  Ingest(cupti::SessionEnd{.end_ns = 950}, 2);
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(FixedColumn<int64_t>(batches, "gpu_sessions", "start_ns"),
              ElementsAre(kGpuClockOffset + 100, kGpuClockOffset + 950));
}

TEST_F(GpuRowsTest, WorkWithoutTimesIsCountedNotInvented) {
  Ingest(Kernel("gemm", 0, 0));
  Ingest(Kernel("gemm", 200, 100));
  Ingest(Kernel("gemm", kGpuClockOffset + 100, kGpuClockOffset + 200));  // of the wall clock
  EXPECT_EQ(FindColumn(rows_.Take(), "kernels", "name"), nullptr);
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuUntimed), 3);
}

TEST_F(GpuRowsTest, ImpossibleTotalsAreMalformed) {
  Ingest(KernelTotal("gemm", UINT64_MAX, 1));
  Ingest(KernelTotal("gemm", 1, UINT64_MAX));
  Ingest(KernelTotal("gemm", 1, 1, 2));
  gpu_.FinishAll();
  EXPECT_EQ(FindColumn(rows_.Take(), "kernel_windows", "name"), nullptr);
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuMalformed), 3);
}

TEST_F(GpuRowsTest, SumsOfASessionAreBoundedAndTheRestIsCounted) {
  const std::string name(32'000, 'k');
  cupti::Kernel kernel = Kernel(name, 100, 250);
  cupti::Total total = KernelTotal(name, 1, 150);
  constexpr uint32_t kDevices = 3'000;
  for (uint32_t device = 0; device < kDevices; ++device) {
    kernel.device = total.device = device;
    Ingest(kernel);
    Ingest(total);
  }
  // 32 MB of names are 1,000; each of these devices has two sums.
  EXPECT_NEAR(static_cast<double>(FixedColumn<int64_t>(rows_.Take(), "kernels", "start_ns").size()), 522, 2);
  EXPECT_NEAR(static_cast<double>(drops_.Take().Of(model::DropReason::kGpuTotalsLost)), 2 * (3'000 - 522), 4);
  // The next session has room again.
  Ingest(kernel, 2);
  EXPECT_EQ(FixedColumn<int64_t>(rows_.Take(), "kernels", "start_ns").size(), 1u);
}

TEST_F(GpuRowsTest, DevicesThatAProgramClaimsAreBounded) {
  cupti::Device device = H100();
  for (uint32_t ordinal = 0; ordinal < 1'000; ++ordinal) {
    device.ordinal = ordinal;
    device.uuid[1] = static_cast<uint8_t>(ordinal);
    device.uuid[2] = static_cast<uint8_t>(ordinal / 256);
    Ingest(device);
  }
  EXPECT_EQ(TextColumn(rows_.Take(), "devices", "uuid").size(), 64u) << "of a session";
  EXPECT_EQ(drops_.Take().Of(model::DropReason::kGpuMalformed), 1'000 - 64);
  for (uint32_t ordinal = 0; ordinal < 1'000; ++ordinal) {
    device.ordinal = 0;
    device.uuid[1] = static_cast<uint8_t>(ordinal);
    device.uuid[2] = static_cast<uint8_t>(ordinal / 256);
    Ingest(device, 1 + ordinal);
  }
  EXPECT_EQ(TextColumn(rows_.Take(), "devices", "uuid").size(), 256u - 64) << "of all";
}

TEST_F(GpuRowsTest, CallsKeepTheirStackAndProbability) {
  Ingest(cupti::Call{.correlation = 5,
                     .start_ns = 1,
                     .end_ns = 2,
                     .probability = 0.25,
                     .domain = "cuda_driver",
                     .name = "cuLaunchKernel"},
         1, Id128{3, 3});
  Ingest(cupti::Call{.correlation = 6, .name = ""});
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(FixedColumn<double>(batches, "api_calls", "probability"), ElementsAre(0.25, 1.0));
  EXPECT_THAT(FindColumn(batches, "api_calls", "stack")->valid, ElementsAre(1, 0));
  EXPECT_THAT(FixedColumn<int32_t>(batches, "api_calls", "tid"), ElementsAre(43, 43));
}

TEST_F(GpuRowsTest, TextsFromOutsideBecomeUtf8) {
  Ingest(cupti::Range{.start_ns = 1,
                      .end_ns = 0,
                      .kind = "nvtx_push_pop",
                      .domain = "",
                      .text = "a\xff"
                              "b"});
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "ranges", "name"), ElementsAre("a\xEF\xBF\xBD"
                                                                 "b"));
  EXPECT_THAT(FindColumn(batches, "ranges", "end_ns")->valid, ElementsAre(0));
}

TEST_F(GpuRowsTest, CollectivesHaveTheirBytesAndTimesSinceTheEpoch) {
  Ingest(cupti::Communicator{.communicator = 0xabc, .rank = 3, .ranks = 8, .joined_ns = 5}, 0);
  Ingest(cupti::Communicator{.communicator = 0xabd, .joined_ns = 5, .left_ns = 6}, 0);
  Ingest(cupti::Collective{.communicator = 0xabc,
                           .rank = 3,
                           .sequence = 41,
                           .count = 1000,
                           .called_ns = 10,
                           .begin_ns = 20,
                           .end_ns = 30,
                           .operation = "AllReduce",
                           .datatype = "ncclBfloat16"},
         0);
  Ingest(cupti::Collective{.count = INT64_MAX, .called_ns = 10, .datatype = "ncclFloat64"}, 0);
  Ingest(cupti::Collective{.count = 7, .called_ns = 10, .datatype = "ncclNew"}, 0);
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "communicators", "communicator"),
              ElementsAre("0000000000000abc", "0000000000000abd"));
  EXPECT_THAT(FindColumn(batches, "communicators", "ranks")->valid, ElementsAre(1, 0));
  EXPECT_THAT(FindColumn(batches, "communicators", "left_ns")->valid, ElementsAre(0, 1));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "collectives", "bytes"), ElementsAre(2000, 0, 0));
  EXPECT_THAT(FindColumn(batches, "collectives", "bytes")->valid, ElementsAre(1, 0, 0));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "collectives", "end_ns"),
              ElementsAre(kGpuClockOffset + 30, 0, 0));
  EXPECT_THAT(FindColumn(batches, "collectives", "end_ns")->valid, ElementsAre(1, 0, 0));
  EXPECT_THAT(FixedColumn<int32_t>(batches, "collectives", "tid"), ElementsAre(43, 43, 43));
}

}  // namespace
}  // namespace gpusonde::agent
