// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/live_totals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/time.h"
#include "model/batch.h"
#include "model/enums.h"
#include "model/tables/api_calls.h"
#include "model/tables/containers.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/incidents.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/metrics.h"
#include "model/tables/pod_devices.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"

namespace gpusonde::exporters::prometheus {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Id128 kGpu{7, 7};
constexpr int64_t kNow = 1000 * kNanosPerSecond;

Id128 ProcessId(int pid) { return {9, static_cast<uint64_t>(pid)}; }

template <class Table>
model::Batch Rows(const Table& table, std::initializer_list<typename Table::Row> rows) {
  model::BatchBuilder builder(table);
  for (const auto& row : rows) builder.Append(row);
  return builder.Take();
}

model::Batch ProcessRow(int pid, const std::string& name, std::optional<int64_t> exited_ns = {}) {
  return Rows(model::kProcesses,
              {{.process = ProcessId(pid), .pid = pid, .name = name, .exited_ns = exited_ns}});
}

model::Batch Pack(int pid, int64_t count, int64_t duration_ns, Id128 device = kGpu) {
  return Rows(model::kKernelPacks, {{.process = ProcessId(pid),
                                     .device = device,
                                     .name = "k",
                                     .count = count,
                                     .duration_ns = duration_ns}});
}

model::Batch Reading(std::string metric, double value, std::optional<Id128> process = {}) {
  return Rows(model::kMetrics,
              {{.device = kGpu, .process = process, .metric = std::move(metric), .value = value}});
}

class LiveTotalsTest : public testing::Test {
 protected:
  LiveTotalsTest() {
    Add(Rows(model::kSources, {{.host = "node-1"}}));
    Add(Rows(model::kDevices, {{.device = kGpu,
                                .ordinal = 3,
                                .uuid = "GPU-1",
                                .name = "Simulated H100",
                                .pci_bus = "00000000:01:00.0"}}));
  }
  void Add(model::Batch batch, int64_t now_ns = kNow) {
    const std::vector<model::Batch> batches{std::move(batch)};
    totals_.Ingest(batches, now_ns);
  }
  std::string Text(int64_t now_ns = kNow) const {
    return totals_.Render(Format::kText, now_ns,
                          {.cpu_seconds = 1.5, .memory_bytes = 1 << 20, .started_seconds = 12});
  }

  LiveTotals totals_;
};

TEST_F(LiveTotalsTest, ReadingsHaveTheNamesUnitsAndLabelsOfDcgmExporter) {
  Add(Reading("gpu.temperature", 41));
  Add(Reading("gpu.memory.used", 1.5 * (1 << 30)));
  Add(Reading("gpu.energy", 12.25));
  const std::string labels =
      R"({gpu="3",UUID="GPU-1",pci_bus_id="00000000:01:00.0",device="nvidia3",modelName="Simulated H100",)"
      R"(Hostname="node-1"})";
  EXPECT_THAT(Text(), HasSubstr("DCGM_FI_DEV_GPU_TEMP" + labels + " 41\n"));
  EXPECT_THAT(Text(), HasSubstr("DCGM_FI_DEV_FB_USED" + labels + " 1536\n"));
  EXPECT_THAT(Text(), HasSubstr("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + " 12250\n"));
  EXPECT_THAT(Text(), HasSubstr("DCGM_FI_DEV_XID_ERRORS" + labels + " 0\n"));
}

TEST_F(LiveTotalsTest, ActivityIsARatioAndRatesAreBytesPerSecondAsOfDcgm) {
  Add(Reading("gpu.sm.active", 41));
  Add(Reading("gpu.tensor.active", 12.5));
  Add(Reading("gpu.pcie.rx.mean", 2e9));
  Add(Reading("gpu.rows.uncorrected", 2));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\nDCGM_FI_PROF_SM_ACTIVE{gpu=\"3\""));
  EXPECT_THAT(text, HasSubstr(R"(Hostname="node-1"} 0.41)"));
  EXPECT_THAT(text, HasSubstr(R"(Hostname="node-1"} 0.125)"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_PROF_PCIE_RX_BYTES{"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{"));
  EXPECT_THAT(text, Not(HasSubstr("DCGM_FI_PROF_DRAM_ACTIVE{")));
}

TEST_F(LiveTotalsTest, AMigInstanceHasALabelOfItsOwn) {
  constexpr Id128 kInstance{7, 8};
  Add(Rows(model::kDevices, {{.device = kInstance,
                              .ordinal = 3,
                              .uuid = "MIG-1",
                              .name = "Simulated H100 MIG 3g.40gb (instance 2/0)",
                              .parent = kGpu,
                              .gpu_instance = 2,
                              .compute_instance = 0}}));
  Add(Rows(model::kMetrics, {{.device = kInstance, .metric = "gpu.sm.active", .value = 50}}));
  EXPECT_THAT(Text(), HasSubstr(R"(DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="2",gpu="3",UUID="MIG-1",)"));
  EXPECT_THAT(Text(), Not(HasSubstr("DCGM_FI_DEV_XID_ERRORS{GPU_I_ID")));
}

TEST_F(LiveTotalsTest, AReadingDisappearsWhenItIsNotRenewed) {
  Add(Reading("gpu.temperature", 41));
  EXPECT_THAT(Text(kNow + 10 * kNanosPerSecond), HasSubstr("GPU_TEMP{"));
  EXPECT_THAT(Text(kNow + 11 * kNanosPerSecond), Not(HasSubstr("GPU_TEMP{")));
}

TEST_F(LiveTotalsTest, XidsAreCountedByCodeAndTheLastOneIsShown) {
  Add(Reading("gpu.temperature", 41));
  for (const double code : {79, 31, 79, 48}) Add(Reading("gpu.xid", code));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_gpu_xid_errors_total{gpu="3",UUID="GPU-1",xid="79"} 2)"));
  EXPECT_THAT(Text(), HasSubstr(R"(Hostname="node-1"} 48)"));
}

TEST_F(LiveTotalsTest, WhatIsPushedIsThereOnceItIsSet) {
  EXPECT_THAT(Text(), Not(HasSubstr("gpusonde_otlp_")));
  totals_.SetPushed("profiles", {.accepted = 1});
  totals_.SetPushed("profiles", {.accepted = 8, .rejected = 2, .dropped = 3, .retries = 5, .waiting = 4});
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_items_total{signal="profiles",outcome="accepted"} 8)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_items_total{signal="profiles",outcome="dropped"} 3)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_items_total{signal="profiles",outcome="rejected"} 2)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_retries_total{signal="profiles"} 5)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_waiting{signal="profiles"} 4)"));
  EXPECT_THAT(Text(), Not(HasSubstr("gpusonde_otlp_late_rows_total{")));
  totals_.SetLateRows("profiles", 6);
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_otlp_late_rows_total{signal="profiles"} 6)"));
}

TEST_F(LiveTotalsTest, WorkIsSummedByDeviceAndByProcess) {
  Add(ProcessRow(11, "train"));
  Add(ProcessRow(12, "serve"));
  Add(Pack(11, 100, 2 * kNanosPerSecond));
  Add(Pack(11, 1, kNanosPerSecond / 2));
  Add(Pack(12, 10, kNanosPerSecond));
  Add(Rows(model::kMemcpys, {{.process = ProcessId(11),
                              .device = kGpu,
                              .start_ns = 5,
                              .end_ns = 5 + kNanosPerSecond / 4,
                              .bytes = 4096,
                              .kind = "htod"}}));
  Add(Rows(model::kMemsets,
           {{.process = ProcessId(12), .device = kGpu, .start_ns = 0, .end_ns = 1000, .bytes = 64}}));
  const std::string text = Text();
  for (
      const char* line : {
          R"(gpusonde_gpu_kernels_total{gpu="3",UUID="GPU-1"} 111)",
          R"(gpusonde_gpu_kernel_seconds_total{gpu="3",UUID="GPU-1"} 3.5)",
          R"(gpusonde_gpu_copies_total{gpu="3",UUID="GPU-1",kind="htod"} 1)",
          R"(gpusonde_gpu_copy_bytes_total{gpu="3",UUID="GPU-1",kind="htod"} 4096)",
          R"(gpusonde_gpu_copy_seconds_total{gpu="3",UUID="GPU-1",kind="htod"} 0.25)",
          R"(gpusonde_gpu_set_bytes_total{gpu="3",UUID="GPU-1"} 64)",
          R"(gpusonde_process_gpu_kernels_total{gpu="3",UUID="GPU-1",pid="11",command="train"} 101)",
          R"(gpusonde_process_gpu_kernel_seconds_total{gpu="3",UUID="GPU-1",pid="12",command="serve"} 1)",
          R"(gpusonde_process_gpu_copy_bytes_total{gpu="3",UUID="GPU-1",pid="11",command="train",kind="htod"} 4096)",
      })
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

TEST_F(LiveTotalsTest, WorkWhoseRecordsWereLostCounts) {
  const auto lost = [](std::string name, model::WorkPart part) {
    return model::KernelWindow{.part = part,
                               .process = ProcessId(11),
                               .device = kGpu,
                               .name = std::move(name),
                               .count = 5,
                               .duration_ns = kNanosPerSecond};
  };
  Add(Rows(model::kKernelWindows,
           {lost("k", model::WorkPart::kLost), lost("k", model::WorkPart::kAll),
            lost("[memcpy dtoh]", model::WorkPart::kLost), lost("[memset]", model::WorkPart::kLost)}));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_gpu_kernels_total{gpu="3",UUID="GPU-1"} 5)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_gpu_copy_seconds_total{gpu="3",UUID="GPU-1",kind="dtoh"} 1)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_gpu_sets_total{gpu="3",UUID="GPU-1"} 5)"));
}

TEST_F(LiveTotalsTest, ProcessesBeyondTheLimitAreSummedAndCounted) {
  const int all = static_cast<int>(LiveTotals::kMaxProcesses) + 3;
  for (int pid = 1; pid <= all; ++pid) {
    Add(ProcessRow(pid, "train"));
    Add(Pack(pid, 1, 1));
    Add(Pack(pid, 1, 1));
  }
  EXPECT_THAT(Text(), HasSubstr(R"(pid="other",command="other"} 6)"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_processes_omitted 3\n"));
  EXPECT_THAT(Text(),
              HasSubstr(fmt::format("gpusonde_gpu_kernels_total{{gpu=\"3\",UUID=\"GPU-1\"}} {}", 2 * all)));

  // As soon as the end of another one has made room, a process gets a series, from which it counts.
  Add(ProcessRow(1, "train", 1), kNow);
  Add(Pack(all, 1, 1), kNow + LiveTotals::kKeepExitedNs);
  EXPECT_THAT(Text(), Not(HasSubstr(fmt::format("pid=\"{}\"", all))));
  Add(Reading("gpu.temperature", 41), kNow + LiveTotals::kKeepExitedNs + 1);
  Add(Pack(all, 1, 1), kNow + LiveTotals::kKeepExitedNs + 1);
  EXPECT_THAT(
      Text(),
      HasSubstr(fmt::format(
          R"(gpusonde_process_gpu_kernels_total{{gpu="3",UUID="GPU-1",pid="{}",command="train"}} 1)", all)));
  EXPECT_THAT(
      Text(),
      HasSubstr(R"(gpusonde_process_gpu_kernels_total{gpu="3",UUID="GPU-1",pid="other",command="other"} 7)"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_processes_omitted 2\n"));
}

TEST_F(LiveTotalsTest, DevicesBeyondTheLimitAreSummed) {
  Add(ProcessRow(1, "train"));
  for (uint64_t device = 1; device <= LiveTotals::kMaxDevices + 1; ++device) Add(Pack(1, 1, 1, {1, device}));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_gpu_kernels_total{gpu=\"other\",UUID=\"other\"} 2\n"));
}

TEST_F(LiveTotalsTest, NoTwoProcessesHaveTheSameLabels) {
  Add(ProcessRow(11, "train"));
  Add(Pack(11, 5, 1));
  Add(Rows(model::kProcesses, {{.process = {10, 11}, .pid = 11, .name = "train"}}));
  Add(Rows(model::kKernelPacks, {{.process = {10, 11}, .device = kGpu, .count = 2}}));
  EXPECT_THAT(Text(), HasSubstr("pid=\"11\",command=\"train\"} 2\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("pid=\"11\",command=\"train\"} 5\n")));
}

TEST_F(LiveTotalsTest, AnEndThatComesLateLeavesThePidsNewHolder) {
  Add(ProcessRow(11, "old"));
  Add(Rows(model::kProcesses, {{.process = {10, 11}, .pid = 11, .name = "train"}}));
  Add(Rows(model::kKernelPacks, {{.process = {10, 11}, .device = kGpu, .count = 2}}));
  Add(ProcessRow(11, "old", 1));
  Add(Rows(model::kKernelPacks, {{.process = {10, 11}, .device = kGpu, .count = 1}}));
  EXPECT_THAT(Text(), HasSubstr("pid=\"11\",command=\"train\"} 3\n"));
  Add(Reading("gpu.temperature", 41), kNow + LiveTotals::kKeepExitedNs + 1);
  EXPECT_THAT(Text(), HasSubstr("pid=\"11\",command=\"train\"} 3\n"));
}

TEST_F(LiveTotalsTest, AProcessKeepsTheNameOfItsFirstWork) {
  Add(ProcessRow(11, "first"));
  Add(Pack(11, 1, 1));
  Add(ProcessRow(11, "second"));
  Add(Pack(11, 1, 1));
  EXPECT_THAT(Text(), HasSubstr("pid=\"11\",command=\"first\"} 2\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("command=\"second\"")));
}

TEST_F(LiveTotalsTest, CpuTimeIsThatOfProcessesWithGpuWorkAndOfOthers) {
  const auto sample = [](int pid, model::ThreadState state) {
    return model::Sample{.process = ProcessId(pid), .state = state, .weight_ns = kNanosPerSecond / 4};
  };
  Add(ProcessRow(11, "train"));
  Add(Rows(model::kSamples, {sample(11, model::ThreadState::kOnCpu)}));
  Add(Pack(11, 1, 1));
  Add(Rows(model::kSamples, {sample(11, model::ThreadState::kOnCpu), sample(11, model::ThreadState::kIo),
                             sample(12, model::ThreadState::kOnCpu)}));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_cpu_seconds_total{pid=\"11\",command=\"train\"} 0.25\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_cpu_seconds_total{pid=\"other\",command=\"other\"} 0.5\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_samples_total 4\n"));
}

TEST_F(LiveTotalsTest, ASampledCallStandsForTheInverseOfItsProbability) {
  Add(ProcessRow(11, "train"));
  Add(Rows(model::kApiCalls, {{.process = ProcessId(11), .result = 0, .probability = 0.125},
                              {.process = ProcessId(11), .result = 1, .probability = 0.125},
                              {.process = ProcessId(11), .result = 0, .probability = 1}}));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_launches_total{pid=\"11\",command=\"train\"} 9\n"));
}

TEST_F(LiveTotalsTest, AProcessThatOnlyHoldsMemoryHasASeriesWhileItDoes) {
  Add(ProcessRow(11, "train"));
  Add(Reading("gpu.process.memory.used", 4096, ProcessId(11)));
  EXPECT_THAT(
      Text(),
      HasSubstr(R"(gpusonde_process_gpu_memory_bytes{gpu="3",UUID="GPU-1",pid="11",command="train"} 4096)"));
  Add(Reading("gpu.temperature", 41), kNow + 11 * kNanosPerSecond);
  EXPECT_THAT(Text(), Not(HasSubstr("pid=\"11\"")));
}

TEST_F(LiveTotalsTest, TheProfilingOverheadIsARatioOfTheProcess) {
  Add(ProcessRow(11, "train"));
  Add(Pack(11, 1, 1));
  const auto add = [this](std::string metric, double value) {
    Add(Rows(model::kMetrics, {{.process = ProcessId(11), .metric = std::move(metric), .value = value}}));
  };
  add("listening.budget", 0.5);
  add("listening.spent", 0.25);
  const std::string labels = R"({pid="11",command="train"})";
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_listening_budget_ratio" + labels + " 0.005\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_listening_spent_ratio" + labels + " 0.0025\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("gpusonde_process_listening_cost_ratio{"))) << "not known yet";
  add("listening.cost", 50);
  add("listening.cost.low", -25);
  add("listening.cost.high", 100);
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_listening_cost_ratio" + labels + " 0.5\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_listening_cost_low_ratio" + labels + " -0.25\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_process_listening_cost_high_ratio" + labels + " 1\n"));
}

TEST_F(LiveTotalsTest, ProcessesAndDevicesHaveTheLabelsOfTheirPods) {
  const std::string worker(64, 'a');
  Add(Rows(model::kProcesses,
           {{.process = ProcessId(1),
             .pid = 1,
             .name = "train",
             .cgroup = "/kubepods/besteffort/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60/" + worker}}));
  Add(Pack(1, 3, 1'000'000'000));
  Add(Reading("gpu.temperature", 41));
  EXPECT_THAT(Text(), HasSubstr(R"(kernels_total{gpu="3",UUID="GPU-1",pid="1",command="train"} 3)"));
  Add(Rows(model::kContainers,
           {{.container = worker, .name = "worker", .pod = "train-7", .pod_namespace = "ml\n"}}));
  constexpr std::string_view kPod = R"(,namespace="ml\n",pod="train-7",container="worker"})";
  EXPECT_THAT(Text(), HasSubstr(fmt::format(
                          R"(kernels_total{{gpu="3",UUID="GPU-1",pid="1",command="train"{} 3)", kPod)));
  EXPECT_THAT(Text(), HasSubstr(fmt::format(R"(cpu_seconds_total{{pid="1",command="train"{} 0)", kPod)));
  EXPECT_THAT(Text(), HasSubstr(R"(gpusonde_gpu_kernels_total{gpu="3",UUID="GPU-1"} 3)")) << "nobody has it";

  const auto allocated = [](uint64_t number, std::string pod, std::optional<int64_t> end_ns = {}) {
    return Rows(model::kPodDevices, {{.allocation = {7, number},
                                      .device = kGpu,
                                      .pod = std::move(pod),
                                      .pod_namespace = "ml",
                                      .container = "worker",
                                      .end_ns = end_ns}});
  };
  Add(allocated(1, "train-7"));
  Add(allocated(2, "train-7"));  // two time-slices
  EXPECT_THAT(
      Text(),
      HasSubstr(
          R"(gpusonde_gpu_kernels_total{gpu="3",UUID="GPU-1",namespace="ml",pod="train-7",container="worker"} 3)"));
  EXPECT_THAT(Text(), HasSubstr(R"(Hostname="node-1",namespace="ml",pod="train-7",container="worker"} 41)"));
  Add(allocated(3, "notebook-0"));
  EXPECT_THAT(Text(), HasSubstr(R"(Hostname="node-1"} 41)")) << "of several";
  Add(allocated(1, "train-7", 5));
  Add(allocated(2, "train-7", 5));
  EXPECT_THAT(Text(),
              HasSubstr(R"(Hostname="node-1",namespace="ml",pod="notebook-0",container="worker"} 41)"));
}

TEST_F(LiveTotalsTest, IncidentsCountOnceTheyHaveEnded) {
  const model::Incident open{.incident = {5, 5}, .cause = "abstain"};
  model::Incident ended{.incident = {5, 5}, .end_ns = 9, .cause = "cpu_contention"};
  Add(Rows(model::kIncidents, {open}));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_incidents_open 1\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("gpusonde_incidents_total")));
  Add(Rows(model::kIncidents, {ended}));
  Add(Rows(model::kIncidents, {ended}));  // as a new day's file needs it again
  EXPECT_THAT(Text(), HasSubstr("gpusonde_incidents_total{cause=\"cpu_contention\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_incidents_open 0\n"));
}

TEST_F(LiveTotalsTest, DropsHaveASeriesForEveryReason) {
  Add(Rows(model::kDrops, {{.reason = model::DropReason::kRingFull, .count = 4},
                           {.reason = model::DropReason::kRingFull, .count = 2}}));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_dropped_total{reason=\"ring_full\"} 6\n"));
  EXPECT_THAT(Text(), HasSubstr("gpusonde_dropped_total{reason=\"signals_lost\"} 0\n"));
}

TEST_F(LiveTotalsTest, ItsOwnUseHasTheNamesOfPrometheusClients) {
  EXPECT_THAT(Text(), HasSubstr("process_cpu_seconds_total 1.5\n"));
  EXPECT_THAT(Text(), HasSubstr("process_resident_memory_bytes 1048576\n"));
  EXPECT_THAT(Text(), HasSubstr("process_start_time_seconds 12\n"));
}

}  // namespace
}  // namespace gpusonde::exporters::prometheus
