// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sources/nvml/testing/fake_nvml.h"

namespace gpusonde::nvml {
namespace {

using model::DropReason;
using model::Metric;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kPeriod = 100 * kNanosPerMilli;

class PollerTest : public testing::Test {
 protected:
  void SetUp() override { fake_.Reset(); }

  Poller MakePoller() {
    std::vector<std::string> problems;
    const auto devices = ListDevices(library_, problems);
    EXPECT_TRUE(devices.has_value());
    EXPECT_THAT(problems, IsEmpty());
    return Poller(library_, devices.value_or(std::vector<Device>()), [this] { return now_ns_; });
  }
  // Polls the next round, a period later.
  PollResult Round(Poller& poller) {
    now_ns_ += kPeriod;
    PollResult polled;
    poller.Round(kPeriod, polled);
    return polled;
  }
  static std::vector<double> ValuesOf(const PollResult& polled, Metric metric) {
    std::vector<double> values;
    for (const Reading& reading : polled.readings)
      if (reading.metric == metric) values.push_back(reading.value);
    return values;
  }
  static std::vector<std::string> Texts(const PollResult& polled) {
    std::vector<std::string> texts;
    for (const Notice& notice : polled.notices) texts.push_back(notice.text);
    return texts;
  }

  FakeNvml& fake_ = FakeNvml::Get();
  Library library_{FakeNvml::functions()};
  int64_t now_ns_ = 1'000 * kNanosPerSecond;
};

TEST_F(PollerTest, EveryAnswerIsAValueInItsMetricsUnit) {
  Poller poller = MakePoller();
  const PollResult polled = Round(poller);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuUtilization), ElementsAre(50));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuMemoryUtilization), ElementsAre(20));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuMemoryUsed), ElementsAre(1'000'000));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuClockSm), ElementsAre(1980));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPower), ElementsAre(300));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPowerLimit), ElementsAre(700));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuEnergy), ElementsAre(testing::DoubleEq(12.345)));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuTemperature), ElementsAre(40));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuTemperatureSlowdown), ElementsAre(87));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPcieTx), ElementsAre(1'000'000));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuThrottleReasons), ElementsAre(4));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuEccUncorrected), ElementsAre(3));
  for (const Reading& reading : polled.readings) {
    EXPECT_EQ(reading.time_ns, now_ns_);
    EXPECT_EQ(reading.device, 0U);
    EXPECT_EQ(reading.pid, 0);
  }
  EXPECT_THAT(Texts(polled), IsEmpty());
}

TEST_F(PollerTest, ReadsSlowlyChangingMetricsOnceASecond) {
  Poller poller = MakePoller();
  size_t clocks = 0, temperatures = 0;
  for (int round = 0; round < 50; ++round) {
    const PollResult polled = Round(poller);
    clocks += ValuesOf(polled, Metric::kGpuClockSm).size();
    temperatures += ValuesOf(polled, Metric::kGpuTemperature).size();
  }
  EXPECT_EQ(clocks, 50U);
  EXPECT_EQ(temperatures, 5U);
}

TEST_F(PollerTest, RunsUnsupportedQueriesOnce) {
  fake_.SetGpus({{.uuid = "GPU-a",
                  .fails = {{"power", GPUSONDE_NVML_ERROR_NOT_SUPPORTED},
                            {"ecc_errors", GPUSONDE_NVML_ERROR_NO_PERMISSION}}},
                 {.uuid = "GPU-b"}});
  Poller poller = MakePoller();
  EXPECT_THAT(
      Texts(Round(poller)),
      ElementsAre("GPU 0 (Fake) doesn't support: power, ECC errors corrected, ECC errors not corrected"));
  for (int round = 0; round < 30; ++round) {
    const PollResult polled = Round(poller);
    EXPECT_THAT(Texts(polled), IsEmpty());
    EXPECT_THAT(ValuesOf(polled, Metric::kGpuPower), ElementsAre(300)) << "the other device supports it";
    EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 0);
  }
  EXPECT_EQ(fake_.calls("power"), 1 + 31);
}

TEST_F(PollerTest, QueriesWhoseFunctionTheLibraryLacksAreUnsupported) {
  Functions functions = FakeNvml::functions();
  functions.energy = nullptr;
  functions.throttle_reasons = nullptr;
  functions.process_utilization = nullptr;
  const Library old(functions);
  std::vector<std::string> problems;
  Poller poller(old, *ListDevices(old, problems), [this] { return now_ns_; });
  EXPECT_THAT(Texts(Round(poller)),
              ElementsAre("GPU 0 (Fake) doesn't support: throttle reasons, energy, utilization by process"));
}

TEST_F(PollerTest, CountsAnErrorEachTimeAndReportsItOnce) {
  fake_.Fail("power", GPUSONDE_NVML_ERROR_UNKNOWN);
  Poller poller = MakePoller();
  PollResult polled = Round(poller);
  EXPECT_THAT(Texts(polled), ElementsAre("GPU 0 (Fake): power can't be read: fake error (999)"));
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 1);
  EXPECT_TRUE(polled.notices[0].is_problem);
  polled = Round(poller);
  EXPECT_THAT(Texts(polled), IsEmpty());
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 1);
  fake_.Fail("power", GPUSONDE_NVML_SUCCESS);
  EXPECT_THAT(ValuesOf(Round(poller), Metric::kGpuPower), ElementsAre(300));
}

TEST_F(PollerTest, RunsFailingQueriesRarely) {
  fake_.Fail("power", GPUSONDE_NVML_ERROR_UNKNOWN);
  Poller poller = MakePoller();
  for (int round = 0; round < 310; ++round) Round(poller);
  EXPECT_EQ(fake_.calls("power"), 10 + 3) << "ten times, then every ten seconds";
}

TEST_F(PollerTest, DiscardsAbsurdAnswers) {
  for (const auto& [name, metric] :
       std::map<std::string, Metric>{{"clock", Metric::kGpuClockSm},
                                     {"power", Metric::kGpuPower},
                                     {"temperature", Metric::kGpuTemperature},
                                     {"temperature_threshold", Metric::kGpuTemperatureSlowdown},
                                     {"pcie_throughput", Metric::kGpuPcieRx},
                                     {"pcie_generation", Metric::kGpuPcieGeneration},
                                     {"pcie_width", Metric::kGpuPcieWidth},
                                     {"pcie_replays", Metric::kGpuPcieReplays},
                                     {"ecc_errors", Metric::kGpuEccCorrected},
                                     {"energy", Metric::kGpuEnergy},
                                     {"throttle_reasons", Metric::kGpuThrottleReasons}}) {
    fake_.Reset();
    fake_.Alter(0, [&](FakeNvml::Gpu& gpu) { gpu.values[name] = UINT64_MAX; });
    Poller poller = MakePoller();
    const PollResult polled = Round(poller);
    EXPECT_THAT(ValuesOf(polled, metric), IsEmpty()) << name;
    EXPECT_GE(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 1) << name;
  }
  fake_.Reset();
  fake_.Alter(0, [&](FakeNvml::Gpu& gpu) {
    gpu.utilization = {101, UINT32_MAX};
    gpu.memory_used = gpu.memory_total + 1;
  });
  Poller poller = MakePoller();
  const PollResult polled = Round(poller);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuUtilization), IsEmpty());
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuMemoryUtilization), IsEmpty());
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuMemoryUsed), IsEmpty());
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 3);
}

TEST_F(PollerTest, ReadsMemoryByProcess) {
  std::vector<gpusonde_nvml_process> processes(200);  // more than there is room for at first
  for (uint32_t i = 0; i < 200; ++i) processes[i] = {i + 1, uint64_t{i} << 20, UINT32_MAX, UINT32_MAX};
  processes[10].used_bytes = GPUSONDE_NVML_NOT_AVAILABLE;
  processes[11].pid = 0;  // in a pid namespace of its own
  processes[12].used_bytes = UINT64_MAX - 1;
  processes[13].pid = UINT32_MAX;
  fake_.Alter(0, [&](FakeNvml::Gpu& gpu) { gpu.processes = processes; });
  Poller poller = MakePoller();
  const PollResult polled = Round(poller);
  EXPECT_EQ(ValuesOf(polled, Metric::kGpuProcessMemoryUsed).size(), 196U);
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 2);
  for (const Reading& reading : polled.readings) {
    if (reading.metric == Metric::kGpuProcessMemoryUsed) {
      EXPECT_EQ(reading.value, static_cast<double>(uint64_t{static_cast<uint32_t>(reading.pid) - 1} << 20));
    }
  }
}

TEST_F(PollerTest, ReportsAnErrorForAnAbsurdNumberOfProcesses) {
  fake_.Alter(0, [&](FakeNvml::Gpu& gpu) { gpu.processes.resize(1'000'000); });
  Poller poller = MakePoller();
  const PollResult polled = Round(poller);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuProcessMemoryUsed), IsEmpty());
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 1);
}

TEST_F(PollerTest, UtilizationByProcessIsTheMeanOfTheNewSamples) {
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.process_samples = {{7, 1000, 90, 0, 0, 0}}; });
  Poller poller = MakePoller();
  EXPECT_THAT(ValuesOf(Round(poller), Metric::kGpuProcessUtilization), IsEmpty())
      << "from before the poller started";
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) {
    gpu.process_samples = {{7, 1000, 90, 0, 0, 0},       {7, 2000, 40, 0, 0, 0}, {8, 2000, 10, 0, 0, 0},
                           {7, 3000, 60, 0, 0, 0},       {0, 3000, 5, 0, 0, 0},  {9, 3000, 101, 0, 0, 0},
                           {10, UINT64_MAX, 50, 0, 0, 0}};
  });
  now_ns_ += kNanosPerSecond;
  const PollResult polled = Round(poller);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuProcessUtilization), ElementsAre(50, 10));
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 2);
  fake_.Fail("process_utilization", GPUSONDE_NVML_ERROR_NOT_FOUND);
  now_ns_ += kNanosPerSecond;
  EXPECT_EQ(Round(poller).drops.Of(DropReason::kGpuReadingsFailed), 0) << "nothing new is no error";
}

TEST_F(PollerTest, DoesNotPollALostDevice) {
  fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}});
  Poller poller = MakePoller();
  Round(poller);
  EXPECT_FALSE(poller.any_device_lost());
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.fails["utilization"] = GPUSONDE_NVML_ERROR_GPU_IS_LOST; });
  PollResult polled = Round(poller);
  EXPECT_THAT(Texts(polled), ElementsAre(HasSubstr("GPU 0 (Fake) is lost: fake error (15)")));
  EXPECT_TRUE(poller.any_device_lost());
  EXPECT_FALSE(poller.library_lost());
  const int before = fake_.calls("utilization");
  polled = Round(poller);
  EXPECT_EQ(fake_.calls("utilization"), before + 1) << "only the other device";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuClockSm), ElementsAre(1980));
}

TEST_F(PollerTest, ADeviceThatNoLongerAnswersIsLost) {
  Poller poller = MakePoller();
  Round(poller);
  fake_.SetGpus({});  // every call: invalid argument
  std::vector<std::string> reported;
  for (int round = 0; round < 12; ++round)
    for (const std::string& text : Texts(Round(poller))) reported.push_back(text);
  EXPECT_THAT(reported, testing::Contains(HasSubstr("it no longer answers")));
  EXPECT_TRUE(poller.any_device_lost());
}

TEST_F(PollerTest, EndsTheRoundWhenTheDriverIsUnloaded) {
  for (const auto result : {GPUSONDE_NVML_ERROR_UNINITIALIZED, GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED,
                            GPUSONDE_NVML_ERROR_LIB_RM_VERSION_MISMATCH}) {
    fake_.Reset();
    fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}});
    fake_.Fail("utilization", result);
    Poller poller = MakePoller();
    const PollResult polled = Round(poller);
    EXPECT_TRUE(poller.library_lost());
    EXPECT_THAT(Texts(polled), ElementsAre(HasSubstr("NVIDIA's driver was unloaded: fake error")));
    EXPECT_EQ(fake_.calls("utilization"), 1);
  }
}

// A call for PCIe throughput takes 20 ms on real devices; here it takes 20 ms of the poller's clock.
TEST_F(PollerTest, SlowCallsShareHalfOfThePeriodInTurns) {
  static int64_t* clock = nullptr;
  clock = &now_ns_;
  Functions functions = FakeNvml::functions();
  functions.pcie_throughput = [](void*, uint32_t, uint32_t* value) {
    *clock += 20 * kNanosPerMilli;
    *value = 7;
    return gpusonde_nvml_result{GPUSONDE_NVML_SUCCESS};
  };
  fake_.SetGpus(std::vector<FakeNvml::Gpu>(8));
  const Library library(functions);
  std::vector<std::string> problems;
  Poller poller(library, *ListDevices(library, problems), [this] { return now_ns_; });
  PollResult first;
  poller.Round(kPeriod, first);  // finds out
  std::vector<int> read(8);
  for (int round = 0; round < 32; ++round) {
    const int64_t begin_ns = now_ns_;
    PollResult polled;
    poller.Round(kPeriod, polled);
    EXPECT_LE(now_ns_ - begin_ns, kPeriod / 2 + 20 * kNanosPerMilli);
    EXPECT_EQ(ValuesOf(polled, Metric::kGpuClockSm).size(), 8U) << "fast queries run in every round";
    for (const Reading& reading : polled.readings)
      if (reading.metric == Metric::kGpuPcieTx) ++read[reading.device];
  }
  EXPECT_THAT(read, testing::Each(testing::AllOf(testing::Ge(5), testing::Le(7)))) << "each has its turn";
}

}  // namespace
}  // namespace gpusonde::nvml
