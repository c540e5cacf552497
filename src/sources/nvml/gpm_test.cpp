// SPDX-License-Identifier: Apache-2.0
// What the poller reads of newer drivers and devices: GPM, NVLink, remapped rows, MIG instances.
#include "sources/nvml/gpm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "sources/nvml/poller.h"
#include "sources/nvml/testing/fake_nvml.h"

namespace gpusonde::nvml {
namespace {

using model::DropReason;
using model::Metric;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kGpmPeriod = 100 * kNanosPerMilli;

FakeNvml::Gpu Instance(const std::string& uuid, uint64_t gpu_instance) {
  FakeNvml::Gpu gpu{.uuid = uuid, .name = "Fake MIG 3g.40gb", .memory_total = 40'000'000'000};
  gpu.values = {{"gpu_instance_id", gpu_instance}, {"compute_instance_id", 0}, {"multiprocessors", 60}};
  gpu.parent = 0;
  return gpu;
}

class GpmTest : public testing::Test {
 protected:
  void SetUp() override { fake_.Reset(); }

  std::vector<Device> Devices(const Library& library) {
    auto devices = ListDevices(library, problems_);
    EXPECT_TRUE(devices.has_value());
    return std::move(devices).value_or(std::vector<Device>());
  }
  Poller MakePoller() {
    return Poller(library_, Devices(library_), [this] { return now_ns_; });
  }
  PollResult Round(Poller& poller, int64_t later_ns = kGpmPeriod) {
    now_ns_ += later_ns;
    PollResult polled;
    poller.Round(kGpmPeriod, polled);
    return polled;
  }
  static std::vector<double> ValuesOf(const PollResult& polled, Metric metric, size_t device = 0) {
    std::vector<double> values;
    for (const Reading& reading : polled.readings)
      if (reading.metric == metric && reading.device == device) values.push_back(reading.value);
    return values;
  }
  static std::string TextOf(const PollResult& polled) {
    std::string text;
    for (const Notice& notice : polled.notices) text += notice.text + "\n";
    return text;
  }

  FakeNvml& fake_ = FakeNvml::Get();
  Library library_{FakeNvml::functions()};
  int64_t now_ns_ = 1'000 * kNanosPerSecond;
  std::vector<std::string> problems_;
};

TEST_F(GpmTest, MeansOfTheTimeBetweenTwoSamplesAreReadOfTheDevice) {
  Poller poller = MakePoller();
  EXPECT_THAT(ValuesOf(Round(poller), Metric::kGpuSmActive), IsEmpty()) << "there is one sample";
  const PollResult polled = Round(poller, kNanosPerSecond);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmActive), ElementsAre(41));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmOccupancy), ElementsAre(25.5));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuTensorActive), ElementsAre(12));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuDramActive), ElementsAre(33));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPcieRxMean), ElementsAre(200.0 * (1 << 20))) << "bytes/s";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuTensorImma), IsEmpty()) << "the device doesn't have it";
  for (const Reading& reading : polled.readings) EXPECT_EQ(reading.pid, 0) << "never of a process";
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 0);
  EXPECT_EQ(TextOf(polled), "");
}

TEST_F(GpmTest, SamplesAreTakenOnceASecondAndFreed) {
  {
    Poller poller = MakePoller();
    for (int round = 0; round < 50; ++round) Round(poller);
    EXPECT_EQ(fake_.live_samples(), 2);
  }
  EXPECT_EQ(fake_.calls("gpm_sample"), 5);
  EXPECT_EQ(fake_.calls("gpm_metrics"), 4);
  EXPECT_EQ(fake_.calls("gpm_support"), 1);
  EXPECT_EQ(fake_.live_samples(), 0);
}

TEST_F(GpmTest, DoubtfulValuesAreNotStored) {
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) {
    gpu.gpm = {{GPUSONDE_NVML_GPM_SM_UTIL, 100.4},
               {GPUSONDE_NVML_GPM_SM_OCCUPANCY, kNan},
               {GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL, 250},
               {GPUSONDE_NVML_GPM_DRAM_BW_UTIL, -1},
               {GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC, 1e30}};
  });
  Poller poller = MakePoller();
  Round(poller);
  const PollResult polled = Round(poller, kNanosPerSecond);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmActive), ElementsAre(100))
      << "counters are not read at one instant";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmOccupancy), IsEmpty()) << "no value, which is no error";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuTensorActive), IsEmpty());
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuDramActive), IsEmpty());
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPcieRxMean), IsEmpty());
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 3);
}

TEST_F(GpmTest, ADriverThatLacksTheFunctionsIsAskedForTheRest) {
  Functions old = FakeNvml::functions();
  old.gpm_support = nullptr;
  old.gpm_alloc = nullptr;
  old.gpm_free = nullptr;
  old.gpm_sample = nullptr;
  old.gpm_mig_sample = nullptr;
  old.gpm_metrics = nullptr;
  old.field_values = nullptr;
  old.remapped_rows = nullptr;
  old.mig_mode = nullptr;
  const Library library(old);
  const std::vector<Device> devices = Devices(library);
  ASSERT_THAT(devices, SizeIs(1));
  Poller poller(library, devices, [this] { return now_ns_; });
  PollResult polled = Round(poller);
  EXPECT_EQ(TextOf(polled),
            "GPU 0 (Fake) doesn't support: NVLink counters, remapped rows, SM activity (GPM)\n");
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPower), ElementsAre(300));
  polled = Round(poller, kNanosPerSecond);
  EXPECT_EQ(TextOf(polled), "");
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 0);
  EXPECT_THAT(WhyNoGpm(library, devices[0]), HasSubstr("the driver is too old"));
}

TEST_F(GpmTest, ADeviceWithoutCountersIsAskedOnce) {
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.gpm_supported = false; });
  Poller poller = MakePoller();
  EXPECT_THAT(TextOf(Round(poller)), HasSubstr("doesn't support: SM activity (GPM)"));
  for (int round = 0; round < 5; ++round) Round(poller, kNanosPerSecond);
  EXPECT_EQ(fake_.calls("gpm_support"), 1);
  EXPECT_EQ(fake_.calls("gpm_alloc"), 0);
  EXPECT_THAT(WhyNoGpm(library_, Devices(library_)[0]), HasSubstr("before Hopper"));
}

TEST_F(GpmTest, WithoutPermissionNothingIsRetried) {
  fake_.Fail("gpm_sample", GPUSONDE_NVML_ERROR_NO_PERMISSION);
  Poller poller = MakePoller();
  EXPECT_THAT(TextOf(Round(poller)), HasSubstr("doesn't support: SM activity (GPM)"));
  Round(poller, kNanosPerSecond);
  EXPECT_EQ(fake_.calls("gpm_sample"), 1);
  EXPECT_THAT(WhyNoGpm(library_, Devices(library_)[0]), HasSubstr("no permission"));
  fake_.Fail("gpm_sample", GPUSONDE_NVML_SUCCESS);
  EXPECT_EQ(WhyNoGpm(library_, Devices(library_)[0]), "");
}

TEST_F(GpmTest, AFailureInTheMiddleIsCountedAndTheNextSampleComparedWithTheLastOneTaken) {
  Poller poller = MakePoller();
  Round(poller);
  fake_.Fail("gpm_sample", GPUSONDE_NVML_ERROR_UNKNOWN);
  PollResult polled = Round(poller, kNanosPerSecond);
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 1);
  EXPECT_THAT(TextOf(polled), HasSubstr("SM activity (GPM) can't be read: fake error (999)"));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuPower), ElementsAre(300)) << "the rest is read";
  fake_.Fail("gpm_sample", GPUSONDE_NVML_SUCCESS);
  EXPECT_THAT(ValuesOf(Round(poller, kNanosPerSecond), Metric::kGpuSmActive), ElementsAre(41));
  fake_.Fail("gpm_metrics", GPUSONDE_NVML_ERROR_UNKNOWN);
  const int before = fake_.calls("gpm_sample");
  for (int second = 0; second < 30; ++second) Round(poller, kNanosPerSecond);
  EXPECT_LE(fake_.calls("gpm_sample"), before + 13) << "what fails ten times is read every ten seconds";
  EXPECT_GE(fake_.calls("gpm_sample"), before + 11);
}

TEST_F(GpmTest, ALostDeviceIsNotSampled) {
  Poller poller = MakePoller();
  Round(poller);
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.fails["gpm_sample"] = GPUSONDE_NVML_ERROR_GPU_IS_LOST; });
  EXPECT_THAT(TextOf(Round(poller, kNanosPerSecond)), HasSubstr("GPU 0 (Fake) is lost"));
  const int before = fake_.calls("gpm_sample");
  Round(poller, kNanosPerSecond);
  EXPECT_EQ(fake_.calls("gpm_sample"), before);
}

TEST_F(GpmTest, NvlinkCountersAndRemappedRowsAreInTheMetricsUnits) {
  fake_.Alter(
      0, [](FakeNvml::Gpu& gpu) { gpu.fields[GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS] = UINT64_MAX; });
  Poller poller = MakePoller();
  const PollResult polled = Round(poller);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuNvlinkReceived), ElementsAre(9 * 1024)) << "bytes";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuNvlinkReplays), ElementsAre(2));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuNvlinkSent), IsEmpty()) << "the device doesn't have it";
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuNvlinkCrcData), IsEmpty());
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuRowsCorrected), ElementsAre(1));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuRowsUncorrected), ElementsAre(2));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuRowsPending), ElementsAre(1));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuRowsFailure), ElementsAre(0));
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsAbsurd), 1);
  EXPECT_EQ(polled.drops.Of(DropReason::kGpuReadingsFailed), 0);
}

TEST_F(GpmTest, CountersThatHardlyChangeAreReadEveryFiveSeconds) {
  Poller poller = MakePoller();
  for (int round = 0; round < 150; ++round) Round(poller);
  EXPECT_EQ(fake_.calls("field_values"), 3);
  EXPECT_EQ(fake_.calls("remapped_rows"), 3);
  EXPECT_EQ(fake_.calls("power"), 150);
}

TEST_F(GpmTest, ADeviceWithoutNvlinkIsAskedOnce) {
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.fields.clear(); });
  Poller poller = MakePoller();
  EXPECT_THAT(TextOf(Round(poller)), HasSubstr("doesn't support: NVLink counters"));
  Round(poller, kNanosPerSecond);
  EXPECT_EQ(fake_.calls("field_values"), 1);
}

TEST_F(GpmTest, MigInstancesFollowTheirDevice) {
  fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}, Instance("MIG-1", 3), Instance("MIG-2", 5)});
  const std::vector<Device> devices = Devices(library_);
  EXPECT_THAT(problems_, IsEmpty());
  std::vector<std::string> uuids;
  for (const Device& device : devices) uuids.push_back(device.uuid);
  ASSERT_THAT(uuids, ElementsAre("GPU-a", "MIG-1", "MIG-2", "GPU-b"));
  EXPECT_EQ(devices[2].name, "Fake MIG 3g.40gb (instance 5/0)");
  EXPECT_EQ(devices[2].index, 0);
  EXPECT_EQ(devices[2].memory_bytes, 40'000'000'000);
  EXPECT_EQ(devices[2].sm_count, 60);
  ASSERT_TRUE(devices[2].mig.has_value());
  EXPECT_EQ(devices[2].mig->parent_uuid, "GPU-a");
  EXPECT_EQ(devices[2].mig->gpu_instance, 5U);
  EXPECT_FALSE(devices[3].mig.has_value());
}

TEST_F(GpmTest, OfAMigInstanceItsMemoryAndCountersAreRead) {
  fake_.SetGpus({{.uuid = "GPU-a"}, Instance("MIG-1", 3)});
  fake_.Alter(1, [](FakeNvml::Gpu& gpu) { gpu.gpm = {{GPUSONDE_NVML_GPM_SM_UTIL, 7}}; });
  Poller poller = MakePoller();
  Round(poller);
  const PollResult polled = Round(poller, kNanosPerSecond);
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmActive, 0), ElementsAre(41));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuSmActive, 1), ElementsAre(7));
  EXPECT_THAT(ValuesOf(polled, Metric::kGpuMemoryUsed, 1), ElementsAre(1'000'000));
  std::set<Metric> of_instance;
  for (const Reading& reading : polled.readings)
    if (reading.device == 1) of_instance.insert(reading.metric);
  EXPECT_THAT(of_instance, ElementsAre(Metric::kGpuMemoryUsed, Metric::kGpuSmActive)) << "and nothing else";
  EXPECT_EQ(TextOf(polled), "");
  EXPECT_EQ(WhyNoGpm(library_, Devices(library_)[1]), "");
}

TEST_F(GpmTest, AnInstanceThatCannotBeReadIsAComplaint) {
  fake_.SetGpus({{.uuid = "GPU-a"}, Instance("", 3)});
  EXPECT_THAT(Devices(library_), SizeIs(1));
  EXPECT_THAT(problems_, ElementsAre("MIG instance 0 of GPU 0 is not read: it has no UUID"));
  problems_.clear();
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.fails["mig_max_count"] = GPUSONDE_NVML_ERROR_UNKNOWN; });
  EXPECT_THAT(Devices(library_), SizeIs(1));
  EXPECT_THAT(problems_, Contains(HasSubstr("the MIG instances of GPU 0 are not read: fake error (999)")));
  fake_.Alter(0, [](FakeNvml::Gpu& gpu) { gpu.fails = {{"mig_mode", GPUSONDE_NVML_ERROR_NOT_SUPPORTED}}; });
  problems_.clear();
  EXPECT_THAT(Devices(library_), SizeIs(1));
  EXPECT_THAT(problems_, IsEmpty()) << "most devices don't have MIG";
}

}  // namespace
}  // namespace gpusonde::nvml
