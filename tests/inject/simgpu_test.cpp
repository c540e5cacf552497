// SPDX-License-Identifier: Apache-2.0
// The inject library with the simulated GPU's CUPTI: its reports match the device's own log.
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "harness.h"

namespace gpusonde::cupti {
namespace {

// An operation in the device's log (SIMGPU_LOG), or in the library's reports.
struct Operation {
  std::string kind;
  uint32_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t bytes = 0;
  uint64_t graph_node = 0;
  std::string name;
};

class SimGpu : public ::testing::Test {
 protected:
  // Runs the client with a socket. `knobs`: SIMGPU_…=value.
  void RunClient(const std::vector<std::string>& steps, std::vector<std::string> knobs = {}) {
    const std::string log = folder_ / ("log" + std::to_string(runs_++));
    knobs.push_back("SIMGPU_LOG=" + log);
    Outcome outcome = RunWithSocket(steps, std::move(knobs));
    received_ = std::move(outcome.received);
    status_ = outcome.status;
    printed_ = outcome.printed;
    drops_ = outcome.drops;
    device_.clear();
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      Operation operation;
      std::string process, device, context, stream;
      fields >> operation.kind >> process >> device >> context >> stream >> operation.correlation >>
          operation.start_ns >> operation.end_ns >> operation.bytes >> operation.graph_node;
      fields >> operation.name;
      if (operation.kind == "kernel" || operation.kind == "memcpy" || operation.kind == "memset")
        device_.push_back(operation);
    }
  }

  std::vector<Operation> Reported() const {
    std::vector<Operation> reported;
    for (const Received::KernelOf& kernel : received_.kernels)
      reported.push_back({"kernel", kernel.correlation, kernel.start_ns, kernel.end_ns, 0, kernel.graph_node,
                          kernel.kernel_name});
    for (const Memcpy& copy : received_.copies)
      reported.push_back(
          {"memcpy", copy.correlation, copy.start_ns, copy.end_ns, copy.bytes, copy.graph_node, ""});
    for (const Memset& set : received_.sets)
      reported.push_back(
          {"memset", set.correlation, set.start_ns, set.end_ns, set.bytes, set.graph_node, ""});
    return reported;
  }

  // Compares the reports with the device's log, record by record and in total, to the nanosecond.
  void ExpectTheDevicesOwnAccount() {
    std::vector<Operation> reported = Reported();
    const auto order = [](const Operation& operation) {
      return std::tie(operation.kind, operation.correlation, operation.graph_node, operation.start_ns);
    };
    std::ranges::sort(reported, {}, order);
    std::ranges::sort(device_, {}, order);
    EXPECT_EQ(reported.size(), device_.size());
    for (size_t i = 0; i < std::min(reported.size(), device_.size()); ++i) {
      const Operation& here = reported[i];
      const Operation& there = device_[i];
      EXPECT_EQ(std::tie(here.kind, here.name, here.correlation, here.bytes, here.graph_node),
                std::tie(there.kind, there.name, there.correlation, there.bytes, there.graph_node));
      EXPECT_EQ(here.end_ns - here.start_ns, there.end_ns - there.start_ns);
      // CUPTI converts the device's clock into ours, to within the time that reading two clocks takes.
      ASSERT_NEAR(static_cast<double>(here.start_ns - there.start_ns), 0, 5000)
          << here.name << " " << here.correlation;
    }
    std::map<std::pair<Total::Of, std::string>, Received::Sum> sums;
    for (const Operation& operation : device_) {
      const Total::Of of = operation.kind == "kernel"   ? Total::Of::kKernel
                           : operation.kind == "memcpy" ? Total::Of::kMemcpy
                                                        : Total::Of::kMemset;
      Received::Sum& sum = sums[{of, of == Total::Of::kMemcpy ? "htod" : operation.name}];
      ++sum.count;
      sum.total_ns += static_cast<uint64_t>(operation.end_ns - operation.start_ns);
      sum.bytes += operation.bytes;
    }
    for (const auto& [key, sum] : sums) {
      const Received::Sum sent_sum = received_.TotalOf(key.first, key.second);
      EXPECT_EQ(sent_sum.count, sum.count) << key.second;
      EXPECT_EQ(sent_sum.untimed, 0U) << key.second;
      EXPECT_EQ(sent_sum.total_ns, sum.total_ns) << key.second;
      EXPECT_EQ(sent_sum.bytes, sum.bytes) << key.second;
    }
  }

  TempFolder folder_;
  int runs_ = 0;
  Received received_;
  std::vector<Operation> device_;
  model::DropCounts drops_;
  std::string printed_;
  int status_ = -1;
};

TEST_F(SimGpu, ReportsExactlyTheOperationsOfTheDevice) {
  RunClient({"kernels=5000", "copies=100", "sets=50", "graph=20,30", "threads=3,500", "sync", "wait=100",
             "exit=6"});
  EXPECT_EQ(status_, 6);
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(device_.size(), 5000U + 100 + 50 + 600 + 1500);
  ExpectTheDevicesOwnAccount();
  ExpectNothingLost(drops_);
}

// Each has a buffer of its own at CUPTI.
TEST_F(SimGpu, ReportsTheOperationsOfManyThreads) {
  RunClient({"threads=100,100", "sync", "wait=100"});
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(device_.size(), 100U * 100);
  ExpectTheDevicesOwnAccount();
  ExpectNothingLost(drops_);
}

class SimGpuRate : public SimGpu, public ::testing::WithParamInterface<int> {};

TEST_P(SimGpuRate, TotalsAreExactAtEveryRate) {
  RunClient({"rate=" + std::to_string(GetParam()) + ",2", "sync", "wait=100"});
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(device_.size(), 2U * static_cast<size_t>(GetParam()));
  ExpectTheDevicesOwnAccount();
  ExpectNothingLost(drops_);
}
INSTANTIATE_TEST_SUITE_P(LaunchesPerSecond, SimGpuRate, ::testing::Values(1'000, 10'000, 100'000));

// Sampling probabilities follow the time that kernels take, which is in their records.
TEST_F(SimGpu, AllLaunchesOfARareLongKernelAreSampled) {
  RunClient({"mix=20000,10", "sync", "wait=100"});
  int64_t first_ns = INT64_MAX;
  for (const Received::KernelOf& kernel : received_.kernels) first_ns = std::min(first_ns, kernel.start_ns);
  std::map<uint32_t, double> chosen;  // correlation id: probability
  for (const Received::CallOf& call : received_.calls) chosen[call.correlation] = call.probability;
  int long_ones = 0;
  for (const Received::KernelOf& kernel : received_.kernels) {
    // The first one is sampled by chance. Its time is known a second later and used in the second after that,
    // later still on a busy machine. By its share of the time it may have 13 samples a second, more than it
    // is launched in a second of the sampler.
    if (kernel.kernel_name != "delta" || kernel.start_ns < first_ns + 7'000'000'000) continue;
    ++long_ones;
    EXPECT_EQ(chosen[kernel.correlation], 1) << kernel.start_ns - first_ns;
  }
  EXPECT_GT(long_ones, 20);
  EXPECT_LT(received_.calls.size(), 7500U);
}

TEST_F(SimGpu, AwkwardDeliveryChangesNothing) {
  // Each early record takes a buffer of its own. At this rate they don't run out even if the library's thread
  // gets no CPU for a while.
  RunClient({"rate=1000,5", "sync", "wait=300"},
            {"SIMGPU_CUPTI_LATE_US=20000", "SIMGPU_CUPTI_EARLY=0.3", "SIMGPU_CUPTI_REORDER=0.5"});
  ExpectTheDevicesOwnAccount();
  ExpectNothingLost(drops_);
}

TEST_F(SimGpu, NamesAreRightWhenModulesAreUnloaded) {
  RunClient({"modules=200", "sync", "wait=100"});
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(received_.TotalOf(Total::Of::kKernel, "gamma" + std::to_string(i)).count, 1U) << i;
  ExpectTheDevicesOwnAccount();
}

TEST_F(SimGpu, DroppedAndUntimedRecordsAreCounted) {
  RunClient({"kernels=10000", "sync", "wait=100"}, {"SIMGPU_CUPTI_DROP=0.01", "SIMGPU_CUPTI_ZERO=0.01"});
  const uint64_t reported = received_.TotalOf(Total::Of::kKernel, "alpha").count +
                            received_.TotalOf(Total::Of::kKernel, "beta").count;
  const int64_t dropped = drops_.Of(model::DropReason::kGpuRecordsDropped);
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(static_cast<int64_t>(reported) + dropped, 10000);
  EXPECT_GT(received_.TotalOf(Total::Of::kKernel, "alpha").untimed, 0U);
}

// All are in one buffer, as none is delivered early: the call that fails isn't one at a buffer's end.
TEST_F(SimGpu, RecordsThatCuptiCantReadCount) {
  RunClient({"kernels=100", "sync", "wait=600"},
            {"SIMGPU_CUPTI_EARLY=0", "SIMGPU_CUPTI_FAIL=cuptiActivityGetNextRecord:999@10"});
  EXPECT_LT(received_.kernels.size(), 100U);
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuRecordsDropped), 1);
}

TEST_F(SimGpu, CorrelationIdsWrap) {
  RunClient({"kernels=100", "sync", "wait=100"}, {"SIMGPU_CORRELATION_START=4294967270"});
  ExpectTheDevicesOwnAccount();
  EXPECT_EQ(received_.calls.size(), 100U);
}

TEST_F(SimGpu, DevicesAreReportedWithTheirNames) {
  RunClient({"kernels=10", "sync", "wait=400"});
  ASSERT_EQ(received_.devices.size(), 1U);
  EXPECT_NE(received_.devices[0].name.find("imulated"), std::string::npos) << received_.devices[0].name;
  EXPECT_GT(received_.devices[0].sm_count, 0);
  EXPECT_GT(received_.devices[0].memory_bytes, 0);
}

// Every function of CUPTI's that the library calls: their names are in it.
std::set<std::string> CuptiCalls() {
  const std::string library = ReadFile(GPUSONDE_INJECT_LIBRARY).value();
  std::set<std::string> names;
  for (size_t at = 0; (at = library.find("cupti", at)) != std::string::npos; ++at)
    if (at > 0 && library[at - 1] == '\0' && std::isupper(library[at + 5]) != 0)
      names.insert(library.c_str() + at);
  return names;
}

class CuptiFault : public SimGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(CuptiFault, InAnyCallDoesNotAffectTheProgram) {
  const std::set<std::string> calls = CuptiCalls();
  ASSERT_TRUE(calls.contains("cuptiActivityFlushAll") && calls.contains("cuptiSubscribe_v2")) << calls.size();
  const std::string fault = GetParam();
  const std::string knob = fault.substr(0, fault.find(' ')) + "=";
  for (const std::string& function : calls) {
    RunClient({"kernels=200", "graph=5,2", "sync", "wait=300", "exit=6"},
              {knob + function + fault.substr(fault.find(' ') + 1)});
    EXPECT_EQ(status_, 6) << function;
    EXPECT_EQ(printed_, "") << function;
    EXPECT_EQ(device_.size(), 210U) << function << ": the device's work is unchanged";
  }
}
INSTANTIATE_TEST_SUITE_P(All, CuptiFault,
                         ::testing::Values("SIMGPU_CUPTI_FAIL :8",      // out of memory
                                           "SIMGPU_CUPTI_FAIL :999",    // unknown
                                           "SIMGPU_CUPTI_FAIL :999@2",  // after it worked once
                                           "SIMGPU_CUPTI_DELAY :100"));

TEST_F(SimGpu, AnExecStartsANewSessionWithoutLoss) {
  RunClient({"kernels=1000", "sync", "wait=600", "exec", "kernels=500", "sync", "wait=100", "exit=6"});
  EXPECT_EQ(status_, 6);
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(received_.begins.size(), 2U);
  EXPECT_EQ(received_.pids.size(), 1U);
  EXPECT_EQ(received_.kernels.size(), 1500U);
}

TEST_F(SimGpu, LibrariesThatTheProgramClosesStayLoaded) {
  RunClient({"kernels=1000", "dlclose", "kernels=1000", "sync", "dlclose", "wait=400", "exit=6"});
  EXPECT_EQ(status_, 6);
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(device_.size(), 2000U);
  ExpectTheDevicesOwnAccount();
  ExpectNothingLost(drops_);
}

TEST_F(SimGpu, AnExitDuringAFlushKeepsItsStatus) {
  // Flushes take longer than the time between them, so one is under way.
  RunClient({"kernels=5000", "sync", "wait=700", "exit=6"}, {"SIMGPU_CUPTI_DELAY=cuptiActivityFlushAll:300"});
  EXPECT_EQ(status_, 6);
  EXPECT_EQ(printed_, "");
}

TEST_F(SimGpu, ASlowFlushAtTheExitKeepsItsStatus) {
  RunClient({"kernels=200", "sync", "wait=300", "exit=6"}, {"SIMGPU_CUPTI_DELAY=cuptiActivityFlushAll:5000"});
  EXPECT_EQ(status_, 6);
  EXPECT_EQ(printed_, "");
}

}  // namespace
}  // namespace gpusonde::cupti
