// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 as monitors use it.
#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "simgpu/machine/machine.h"
#include "simgpu/tests/client.h"
#include "wire/nvidia/nvml.h"

namespace simgpu::tests {
namespace {

struct Monitor {
  void* nvml = Open("libnvidia-ml.so.1");
  void* device = nullptr;

  Monitor() {
    EXPECT_EQ(Function<gpusonde_nvml_plain_fn>("nvmlInit_v2")(), 0);
    EXPECT_EQ(Function<gpusonde_nvml_by_index_fn>("nvmlDeviceGetHandleByIndex_v2")(0, &device), 0);
  }
  template <class F>
  F* Function(const char* name) {
    return Symbol<F>(nvml, name);
  }
  uint32_t Read(const char* name) {
    uint32_t value = 0;
    EXPECT_EQ(Function<gpusonde_nvml_device_u32_fn>(name)(device, &value), 0) << name;
    return value;
  }
  uint64_t ReadLong(const char* name) {
    uint64_t value = 0;
    EXPECT_EQ(Function<gpusonde_nvml_device_u64_fn>(name)(device, &value), 0) << name;
    return value;
  }
  uint32_t ReadWhich(const char* name, uint32_t which) {
    uint32_t value = 0;
    EXPECT_EQ(Function<gpusonde_nvml_device_which_u32_fn>(name)(device, which, &value), 0) << name;
    return value;
  }
  gpusonde_nvml_utilization Utilization() {
    gpusonde_nvml_utilization utilization{};
    EXPECT_EQ(Function<gpusonde_nvml_utilization_fn>("nvmlDeviceGetUtilizationRates")(device, &utilization),
              0);
    return utilization;
  }
};

void Sleep(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(Nvml, DeviceNamesContainSimulated) {
  const TestMachine machine;
  InChild({}, [] {
    Monitor monitor;
    std::array<char, GPUSONDE_NVML_NAME_BYTES> text{};
    auto* name = monitor.Function<gpusonde_nvml_device_text_fn>("nvmlDeviceGetName");
    EXPECT_EQ(name(monitor.device, text.data(), text.size()), 0);
    EXPECT_TRUE(std::string(text.data()).starts_with("Simulated"));
    EXPECT_EQ(name(monitor.device, text.data(), 4), GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(name(nullptr, text.data(), text.size()), GPUSONDE_NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(monitor.Function<gpusonde_nvml_device_text_fn>("nvmlDeviceGetUUID")(monitor.device, text.data(),
                                                                                  text.size()),
              0);
    EXPECT_TRUE(std::string(text.data()).starts_with("GPU-73696d75-6c61-7465-64")) << text.data();
    EXPECT_EQ(monitor.Function<gpusonde_nvml_plain_fn>("nvmlShutdown")(), 0);
    EXPECT_EQ(name(monitor.device, text.data(), text.size()), GPUSONDE_NVML_ERROR_UNINITIALIZED);
  });
}

TEST(Nvml, ReadingsMatchTheTimeline) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Monitor monitor;
    client.Load();
    const uint32_t cold_mw = monitor.Read("nvmlDeviceGetPowerUsage");
    EXPECT_EQ(monitor.ReadLong("nvmlDeviceGetCurrentClocksThrottleReasons"), GPUSONDE_NVML_THROTTLE_GPU_IDLE);
    // 10 ms of every 20 for 0.6 s, on the whole device.
    const int64_t begin_ns = MonotonicNs();
    for (int64_t i = 0; i < 30; ++i) {
      client.Launch(10 * kMs, client.stream, 1 << 20);
      while (MonotonicNs() < begin_ns + (i + 1) * 20 * kMs) Sleep(1);
    }
    const uint32_t gpu = monitor.Utilization().gpu;
    EXPECT_GE(gpu, 35U);
    EXPECT_LE(gpu, 65U);
    const uint32_t warm_mw = monitor.Read("nvmlDeviceGetPowerUsage");
    EXPECT_GT(warm_mw, cold_mw + 100'000);
    std::array<gpusonde_nvml_process_sample, 32> samples{};
    uint32_t count = samples.size();
    EXPECT_EQ(monitor.Function<gpusonde_nvml_process_utilization_fn>("nvmlDeviceGetProcessUtilization")(
                  monitor.device, samples.data(), &count, 0),
              0);
    ASSERT_EQ(count, 1U);
    EXPECT_EQ(samples[0].pid, static_cast<uint32_t>(::getpid()));
    EXPECT_GE(samples[0].sm, 25U);
    client.Launch(300 * kMs, client.stream, 1 << 20);
    Sleep(5);
    EXPECT_EQ(monitor.ReadLong("nvmlDeviceGetCurrentClocksThrottleReasons"), 0U);
    EXPECT_EQ(monitor.ReadWhich("nvmlDeviceGetClockInfo", GPUSONDE_NVML_CLOCK_SM), 1980U);
    client.cuStreamSynchronize(client.stream);
    EXPECT_EQ(monitor.ReadLong("nvmlDeviceGetCurrentClocksThrottleReasons"), GPUSONDE_NVML_THROTTLE_GPU_IDLE);
    EXPECT_EQ(monitor.ReadWhich("nvmlDeviceGetClockInfo", GPUSONDE_NVML_CLOCK_SM), 1980U)
        << "the context stays";
    EXPECT_GT(monitor.ReadLong("nvmlDeviceGetTotalEnergyConsumption"), 100'000U) << "mJ";
  });
  InChild({}, [] {
    EXPECT_LT(Monitor().ReadWhich("nvmlDeviceGetClockInfo", GPUSONDE_NVML_CLOCK_SM), 1000U)
        << "no process has a context any more";
  });
}

TEST(Nvml, SamplesAreNewerThanTheLastSeenOnes) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Monitor monitor;
    client.Load();
    client.Launch(700 * kMs, client.stream, 1 << 20);
    Sleep(600);
    auto* get = monitor.Function<gpusonde_nvml_samples_fn>("nvmlDeviceGetSamples");
    std::array<gpusonde_nvml_sample, 128> samples{};
    uint32_t count = samples.size();
    uint32_t type = 0;
    ASSERT_EQ(get(monitor.device, GPUSONDE_NVML_SAMPLES_UTILIZATION, 0, &type, &count, samples.data()), 0);
    ASSERT_GE(count, 2U);
    EXPECT_EQ(samples[count - 1].value.unsigned_int, 100U);
    const uint64_t last_us = samples[count - 1].time_us;
    count = samples.size();
    EXPECT_EQ(get(monitor.device, GPUSONDE_NVML_SAMPLES_UTILIZATION, last_us, &type, &count, samples.data()),
              GPUSONDE_NVML_ERROR_NOT_FOUND);
  });
}

TEST(Nvml, CopiesShowAsPcieThroughput) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Monitor monitor;
    uint64_t memory = 0;
    void* pinned = nullptr;
    constexpr size_t kBytes = 4'000'000'000;  // 77 ms
    ASSERT_EQ(client.cuMemAlloc_v2(&memory, kBytes), 0);
    ASSERT_EQ(client.cuMemAllocHost_v2(&pinned, kBytes), 0);
    client.cuMemcpyHtoDAsync_v2(memory, pinned, kBytes, client.stream);
    Sleep(40);
    const uint32_t received = monitor.ReadWhich("nvmlDeviceGetPcieThroughput", GPUSONDE_NVML_PCIE_RX_BYTES);
    EXPECT_NEAR(received, 52e6, 3e6) << "KB/s";
    EXPECT_EQ(monitor.ReadWhich("nvmlDeviceGetPcieThroughput", GPUSONDE_NVML_PCIE_TX_BYTES), 0U);
  });
}

TEST(Nvml, MemoryIsCountedByProcess) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Monitor monitor;
    gpusonde_nvml_memory before{};
    gpusonde_nvml_memory after{};
    auto* info = monitor.Function<gpusonde_nvml_memory_fn>("nvmlDeviceGetMemoryInfo");
    EXPECT_EQ(info(monitor.device, &before), 0);
    uint64_t memory = 0;
    client.cuMemAlloc_v2(&memory, 123 << 20);
    EXPECT_EQ(info(monitor.device, &after), 0);
    EXPECT_EQ(after.used - before.used, uint64_t{123} << 20);
    EXPECT_EQ(after.used + after.free, after.total);
    gpusonde_nvml_process process{};
    uint32_t count = 1;
    EXPECT_EQ(monitor.Function<gpusonde_nvml_processes_fn>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  monitor.device, &count, &process),
              0);
    EXPECT_EQ(process.pid, static_cast<uint32_t>(::getpid()));
    EXPECT_EQ(process.used_bytes, uint64_t{123} << 20);
    count = 0;
    EXPECT_EQ(monitor.Function<gpusonde_nvml_processes_fn>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  monitor.device, &count, nullptr),
              GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 1U);
  });
}

TEST(Nvml, AnXidWakesItsWaiters) {
  const TestMachine machine;
  InChild({}, [] {
    Monitor monitor;
    void* set = nullptr;
    gpusonde_nvml_event event{};
    auto* wait = monitor.Function<gpusonde_nvml_event_set_wait_fn>("nvmlEventSetWait_v2");
    ASSERT_EQ(monitor.Function<gpusonde_nvml_event_set_create_fn>("nvmlEventSetCreate")(&set), 0);
    ASSERT_EQ(monitor.Function<gpusonde_nvml_register_events_fn>("nvmlDeviceRegisterEvents")(
                  monitor.device, GPUSONDE_NVML_EVENT_XID, set),
              0);
    EXPECT_EQ(wait(set, &event, 20), GPUSONDE_NVML_ERROR_TIMEOUT);
    const std::string command = std::string(SIMGPU_FOLDER) + "/../../bin/simgpu fault 0 xid ";
    std::thread faults([&] {
      Sleep(50);
      EXPECT_EQ(std::system((command + "79").c_str()), 0);
      EXPECT_EQ(std::system((command + "48").c_str()), 0);
    });
    EXPECT_EQ(wait(set, &event, 10'000), 0);
    EXPECT_EQ(event.type, GPUSONDE_NVML_EVENT_XID);
    EXPECT_EQ(event.data, 79U);
    EXPECT_EQ(event.device, monitor.device);
    EXPECT_EQ(wait(set, &event, 10'000), 0);
    EXPECT_EQ(event.data, 48U);
    faults.join();
    EXPECT_EQ(monitor.Function<gpusonde_nvml_event_set_free_fn>("nvmlEventSetFree")(set), 0);
  });
}

TEST(Nvml, FaultsShowInTheReadings) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Monitor monitor;
    client.Load();
    const std::string command = std::string(SIMGPU_FOLDER) + "/../../bin/simgpu fault 0 ";
    for (const char* fault :
         {"pcie-width 4", "pcie-replays 17", "ecc-corrected 3", "ecc-uncorrected 1", "power-cap 300"})
      EXPECT_EQ(std::system((command + fault).c_str()), 0) << fault;
    EXPECT_NE(std::system((command + "gremlins 1 2>/dev/null").c_str()), 0);
    EXPECT_EQ(monitor.Read("nvmlDeviceGetCurrPcieLinkWidth"), 4U);
    EXPECT_EQ(monitor.Read("nvmlDeviceGetPcieReplayCounter"), 17U);
    EXPECT_EQ(monitor.Read("nvmlDeviceGetEnforcedPowerLimit"), 300'000U);
    auto* ecc = monitor.Function<gpusonde_nvml_total_ecc_fn>("nvmlDeviceGetTotalEccErrors");
    uint64_t errors = 0;
    EXPECT_EQ(ecc(monitor.device, GPUSONDE_NVML_ERRORS_CORRECTED, GPUSONDE_NVML_VOLATILE_ECC, &errors), 0);
    EXPECT_EQ(errors, 3U);
    EXPECT_EQ(ecc(monitor.device, GPUSONDE_NVML_ERRORS_UNCORRECTED, GPUSONDE_NVML_AGGREGATE_ECC, &errors), 0);
    EXPECT_EQ(errors, 1U);
    client.Launch(400 * kMs, client.stream, 1 << 20);
    Sleep(20);
    EXPECT_EQ(monitor.ReadLong("nvmlDeviceGetCurrentClocksThrottleReasons"),
              GPUSONDE_NVML_THROTTLE_SW_POWER_CAP);
    EXPECT_LT(monitor.ReadWhich("nvmlDeviceGetClockInfo", GPUSONDE_NVML_CLOCK_SM), 1500U);
    EXPECT_GT(client.Account().kernel_ns, 500 * kMs) << "a capped device is slower";
  });
}

}  // namespace
}  // namespace simgpu::tests
