// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/device.h"

#include <gtest/gtest.h>

#include <memory>

namespace simgpu {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

DeviceModel Model() {
  DeviceModel model{};
  model.sms = 100;
  model.max_threads_per_sm = 2048;
  model.pcie_generation = 4;
  model.pcie_width = 16;
  model.memory_bytes = 1 << 30;
  model.link_bytes_per_ns = 10;
  model.memory_bytes_per_ns = 100;
  model.launch_latency_ns = 1'000;
  model.power = {50, 500, 500, 30, 0.05, 20, 87, 0.3};
  return model;
}

struct Fixture {
  Fixture() {
    device->Create(Model(), 0);
    slot = device->Attach(7, 1).value();
  }
  std::unique_ptr<Device> device = std::make_unique<Device>();
  uint32_t slot = 0;
};

TEST(Device, AStreamsKernelsRunOneAfterTheOther) {
  Fixture f;
  const auto first = f.device->SubmitKernel(f.slot, 0, 0, 10'000, 1000, 256);
  const auto second = f.device->SubmitKernel(f.slot, 0, first->end_ns, 20'000, 1000, 256);
  EXPECT_EQ(first->start_ns, 1'000) << "the launch's latency";
  EXPECT_EQ(first->end_ns - first->start_ns, 10'000);
  EXPECT_EQ(second->start_ns, first->end_ns);
}

TEST(Device, SmallKernelsOfTwoStreamsRunTogether) {
  Fixture f;
  const auto first = f.device->SubmitKernel(f.slot, 0, 0, 10'000, 10, 1024);
  const auto second = f.device->SubmitKernel(f.slot, 0, 0, 10'000, 10, 1024);
  EXPECT_EQ(first->start_ns, second->start_ns);
  const auto large = f.device->SubmitKernel(f.slot, 0, 0, 10'000, 100'000, 1024);
  EXPECT_EQ(large->start_ns, first->end_ns);
}

TEST(Device, UtilisationIsTheShareOfTimeWithAKernelRunning) {
  Fixture f;
  // 2 ms of every 10, for a second.
  for (int64_t t = 0; t < kSecond; t += 10 * kMs) f.device->SubmitKernel(f.slot, t, 0, 2 * kMs, 1, 32);
  const Sample& sample = f.device->LastSample(kSecond);
  EXPECT_NEAR(static_cast<double>(sample.busy_ns) / Device::kSamplePeriodNs, 0.2, 0.02);
  EXPECT_NEAR(1e3 * sample.process_busy_us[f.slot] / Device::kSamplePeriodNs, 0.2, 0.02);
}

TEST(Device, TheAccountIsExact) {
  Fixture f;
  int64_t kernel_ns = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const auto span = f.device->SubmitKernel(f.slot, i * 1000, 0, 700 + i, 1, 32);
    kernel_ns += span->end_ns - span->start_ns;
  }
  const Device::Span copy = f.device->SubmitCopy(f.slot, 0, 0, 1 << 20, CopyDirection::kHostToDevice, false);
  const Account& account = f.device->process(f.slot).account;
  EXPECT_EQ(account.kernels, 500);
  EXPECT_EQ(account.kernel_ns, kernel_ns);
  EXPECT_EQ(account.copy_bytes, 1 << 20);
  EXPECT_EQ(account.copy_ns, copy.end_ns - copy.start_ns);
}

TEST(Device, ANarrowLinkMakesCopiesLong) {
  Fixture f;
  const Device::Span wide =
      f.device->SubmitCopy(f.slot, 0, 0, 100 * kMs, CopyDirection::kHostToDevice, false);
  f.device->faults().pcie_width = 4;
  const Device::Span narrow =
      f.device->SubmitCopy(f.slot, 0, 0, 100 * kMs, CopyDirection::kDeviceToHost, false);
  EXPECT_NEAR(static_cast<double>(narrow.end_ns - narrow.start_ns),
              4.0 * static_cast<double>(wide.end_ns - wide.start_ns), 10'000);
}

TEST(Device, StartsNothingWhileItIsStalled) {
  Fixture f;
  const auto before = f.device->SubmitKernel(f.slot, 0, 0, 10 * kMs, 1, 256);
  f.device->faults().stalled_until_ns = kSecond;
  EXPECT_LT(before->start_ns, kMs);
  EXPECT_EQ(f.device->SubmitKernel(f.slot, kMs, 0, kMs, 1, 256)->start_ns, kSecond);
  EXPECT_EQ(f.device->SubmitCopy(f.slot, kMs, 0, 1 << 20, CopyDirection::kHostToDevice, false).start_ns,
            kSecond);
  EXPECT_LT(f.device->SubmitKernel(f.slot, 2 * kSecond, 0, kMs, 1, 256)->start_ns, 2 * kSecond + kMs);
}

TEST(Device, AHotRoomThrottlesTheClocksAndSoTheKernels) {
  Fixture f;
  f.device->faults().ambient_c = 50;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  for (int64_t t = 0; t < 120 * kSecond; t += 100 * kMs) {
    const auto span = f.device->SubmitKernel(f.slot, t, 0, 95 * kMs, 1 << 20, 256);
    if (t == 0) first_ns = span->end_ns - span->start_ns;
    last_ns = span->end_ns - span->start_ns;
  }
  EXPECT_EQ(first_ns, 95 * kMs);
  EXPECT_GT(last_ns, first_ns * 11 / 10);
  EXPECT_GT(f.device->temperature_c(), 87);
}

TEST(Device, MemoryRunsOutAndComesBack) {
  Fixture f;
  EXPECT_TRUE(f.device->Allocate(f.slot, 1 << 29));
  EXPECT_FALSE(f.device->Allocate(f.slot, (1 << 29) + 1));
  f.device->Free(f.slot, 1 << 29);
  EXPECT_TRUE(f.device->Allocate(f.slot, 1 << 30));
}

TEST(Device, ADetachedProcessLeavesNothingBehind) {
  Fixture f;
  f.device->Allocate(f.slot, 1 << 20);
  f.device->SubmitKernel(f.slot, 0, 0, kSecond, 1 << 20, 256);
  f.device->Detach(f.slot, kMs);
  EXPECT_EQ(f.device->used_bytes(), 0);
  const uint32_t other = f.device->Attach(8, 2).value();
  EXPECT_LT(f.device->SubmitKernel(other, kMs, 0, kMs, 1 << 20, 256)->start_ns, 2 * kMs);
}

TEST(Device, ALongIdleTimeIsEvaluatedAtOnce) {
  Fixture f;
  f.device->SubmitKernel(f.slot, 0, 0, kSecond, 1 << 20, 256);
  constexpr int64_t kNightNs = 36'000 * kSecond;
  EXPECT_EQ(f.device->LastSample(kNightNs).busy_ns, 0);
  EXPECT_NEAR(f.device->temperature_c(), 30 + 0.05 * 50, 0.01);
  EXPECT_NEAR(f.device->energy_j(), 500 + 50.0 * (10 * 3600 - 1), 1);
}

TEST(Device, AcceptsAsManyProcessesAsThereAreSlots) {
  Fixture f;
  for (uint32_t i = 1; i < Device::kProcesses; ++i)
    EXPECT_TRUE(f.device->Attach(static_cast<int32_t>(100 + i), 1).has_value());
  EXPECT_FALSE(f.device->Attach(500, 1).has_value());
  EXPECT_EQ(f.device->Attach(7, 1), f.slot) << "one that is there already";
}

}  // namespace
}  // namespace simgpu
