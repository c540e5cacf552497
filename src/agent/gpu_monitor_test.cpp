// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "agent/rows_testing.h"
#include "base/time.h"
#include "model/batch_rows.h"
#include "model/tables/devices.h"
#include "sources/nvml/testing/fake_nvml.h"

namespace gpusonde::agent {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;

constexpr Id128 kSource{1, 2};
constexpr int64_t kClockOffset = 1'000'000 * kNanosPerSecond;

class GpuMonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_.Reset();
    const auto pid = static_cast<uint32_t>(::getpid());
    constexpr uint32_t kNobody = 1 << 30;
    fake_.Alter(0, [&](nvml::FakeNvml::Gpu& gpu) {
      gpu.processes = {{pid, 4096, UINT32_MAX, UINT32_MAX}, {kNobody, 4096, UINT32_MAX, UINT32_MAX}};
    });
    monitor_ = GpuMonitor::Start(
        {.open = [] { return Result<nvml::Library>(nvml::Library(nvml::FakeNvml::functions())); }}, devices_);
    ASSERT_TRUE(monitor_.has_value());
    monitor_->SetSource(kSource, kClockOffset);
  }

  // Polls until the metric has been read.
  void PollUntil(std::string_view metric) {
    batches_.clear();
    for (int i = 0; i < 3000; ++i) {
      std::ranges::move(monitor_->Poll(), std::back_inserter(batches_));
      if (std::ranges::count(All("metric"), metric) > 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << metric << " never came";
  }
  std::vector<std::string> All(std::string_view column, std::string_view table = "metrics") const {
    std::vector<std::string> values;
    for (const model::Batch& batch : batches_)
      std::ranges::move(TextColumn({batch}, table, column), std::back_inserter(values));
    return values;
  }
  size_t RowsOf(std::string_view table) const {
    size_t rows = 0;
    for (const model::Batch& batch : batches_)
      if (batch.table == table) rows += batch.rows;
    return rows;
  }

  nvml::FakeNvml& fake_ = nvml::FakeNvml::Get();
  std::shared_ptr<DeviceTable> devices_ = std::make_shared<DeviceTable>();
  std::optional<GpuMonitor> monitor_;
  std::vector<model::Batch> batches_;
};

TEST_F(GpuMonitorTest, ReadingsAreRowsOfTheirSourceSinceTheEpoch) {
  const int64_t before_ns = MonotonicNow() + kClockOffset;
  PollUntil("gpu.power");
  for (const model::Batch& batch : batches_) {
    EXPECT_THAT(FixedColumn<Id128>({batch}, "metrics", "source"), Each(kSource));
    EXPECT_THAT(FixedColumn<Id128>({batch}, "metrics", "device"), Each(DeviceIdOf("GPU-fake")));
    EXPECT_THAT(FixedColumn<int64_t>({batch}, "metrics", "time_ns"),
                Each(testing::AllOf(testing::Ge(before_ns - kNanosPerSecond),
                                    testing::Le(MonotonicNow() + kClockOffset))));
  }
  EXPECT_THAT(All("uuid", "devices"), ElementsAre("GPU-fake"));
}

TEST_F(GpuMonitorTest, ProcessesOnADeviceAreNamedAndEndedOnesAreLeftOut) {
  PollUntil("gpu.process.memory.used");
  std::vector<std::string> metrics = All("metric");
  EXPECT_EQ(std::ranges::count(metrics, "gpu.process.memory.used"), 1);
  EXPECT_EQ(RowsOf("processes"), 1U);
  PollUntil("gpu.process.memory.used");
  EXPECT_EQ(RowsOf("processes"), 0U) << "once";
  monitor_->Rewrite();
  PollUntil("gpu.process.memory.used");
  EXPECT_EQ(RowsOf("processes"), 1U) << "and again for a new store";
}

TEST_F(GpuMonitorTest, AMigInstanceIsADeviceWithAParent) {
  nvml::FakeNvml::Gpu instance{.uuid = "MIG-1", .name = "Fake MIG 3g.40gb"};
  instance.values = {{"gpu_instance_id", 3}, {"multiprocessors", 60}};
  instance.parent = 0;
  fake_.SetGpus({{.uuid = "GPU-a"}, instance});
  std::optional<GpuMonitor> monitor = GpuMonitor::Start(
      {.open = [] { return Result<nvml::Library>(nvml::Library(nvml::FakeNvml::functions())); }},
      std::make_shared<DeviceTable>());
  ASSERT_TRUE(monitor.has_value());
  std::vector<model::Device> devices;
  for (int i = 0; i < 3000 && devices.size() < 2; ++i) {
    for (const model::Batch& batch : monitor->Poll())
      if (batch.table == "devices")
        std::ranges::copy(model::RowsOf(model::kDevices, batch), std::back_inserter(devices));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].parent, std::nullopt);
  EXPECT_EQ(devices[1].device, DeviceIdOf("MIG-1"));
  EXPECT_EQ(devices[1].name, "Fake MIG 3g.40gb (instance 3/0)");
  EXPECT_EQ(devices[1].parent, DeviceIdOf("GPU-a"));
  EXPECT_EQ(devices[1].gpu_instance, 3);
  EXPECT_EQ(devices[1].compute_instance, 0);
  EXPECT_EQ(devices[1].sm_count, 60);
}

TEST_F(GpuMonitorTest, LostReadingsAreCounted) {
  fake_.Fail("power", GPUSONDE_NVML_ERROR_UNKNOWN);
  for (int i = 0; i < 3000 && RowsOf("drops") == 0; ++i) {
    std::ranges::move(monitor_->Poll(), std::back_inserter(batches_));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(All("reason", "drops"), Contains("gpu_readings_failed"));
}

TEST_F(GpuMonitorTest, TheLastReadingsComeWithTheEnd) {
  PollUntil("gpu.power");
  fake_.Raise({nvml::FakeNvml::HandleOf(0), GPUSONDE_NVML_EVENT_XID, 79, UINT32_MAX, UINT32_MAX});
  PollUntil("gpu.xid");
  monitor_->Finish();
  EXPECT_TRUE(monitor_->Poll().empty());
}

TEST_F(GpuMonitorTest, ManyProcessesThatUsedADeviceAreForgotten) {
  monitor_ = GpuMonitor::Start(
      {.open = [] { return Result<nvml::Library>(nvml::Library(nvml::FakeNvml::functions())); },
       .max_processes = 1},
      std::make_shared<DeviceTable>());
  ASSERT_TRUE(monitor_.has_value());
  const auto poll_with = [this](pid_t pid) {
    fake_.Alter(0, [&](nvml::FakeNvml::Gpu& gpu) {
      gpu.processes = {{static_cast<uint32_t>(pid), 4096, UINT32_MAX, UINT32_MAX}};
    });
    size_t rows = 0;
    for (int i = 0; i < 2; ++i) {  // a reading before the change may still come
      PollUntil("gpu.process.memory.used");
      rows += RowsOf("processes");
    }
    return rows;
  };
  poll_with(::getpid());
  EXPECT_EQ(poll_with(::getppid()), 1U);
  EXPECT_EQ(poll_with(::getpid()), 1U) << "forgotten, and named again";
}

TEST(GpuMonitor, ThereIsNoneWithoutADriver) {
  EXPECT_FALSE(GpuMonitor::Start({.open = [] { return nvml::Library::Open("libno-such-library.so.1"); }},
                                 std::make_shared<DeviceTable>())
                   .has_value());
}

}  // namespace
}  // namespace gpusonde::agent
