// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1: performance counters (GPM), MIG instances, remapped rows, NVLink counters.
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "simgpu/tests/client.h"
#include "wire/nvidia/nvml.h"

namespace simgpu::tests {
namespace {

struct GpmReader {
  void* nvml = Open("libnvidia-ml.so.1");
  void* device = nullptr;
  std::array<void*, 2> samples{};

  GpmReader() {
    EXPECT_EQ(Function<gpusonde_nvml_plain_fn>("nvmlInit_v2")(), 0);
    EXPECT_EQ(Function<gpusonde_nvml_by_index_fn>("nvmlDeviceGetHandleByIndex_v2")(0, &device), 0);
    for (void*& sample : samples)
      EXPECT_EQ(Function<gpusonde_nvml_gpm_alloc_fn>("nvmlGpmSampleAlloc")(&sample), 0);
  }
  template <class F>
  F* Function(const char* name) {
    return Symbol<F>(nvml, name);
  }
  bool Supported() {
    gpusonde_nvml_gpm_support support{.version = GPUSONDE_NVML_GPM_SUPPORT_VERSION, .supported = 0};
    EXPECT_EQ(Function<gpusonde_nvml_gpm_support_fn>("nvmlGpmQueryDeviceSupport")(device, &support), 0);
    return support.supported != 0;
  }
  gpusonde_nvml_result Take(size_t which) {
    return Function<gpusonde_nvml_gpm_sample_fn>("nvmlGpmSampleGet")(device, samples[which]);
  }
  gpusonde_nvml_result TakeOfInstance(size_t which, uint32_t instance) {
    return Function<gpusonde_nvml_gpm_mig_sample_fn>("nvmlGpmMigSampleGet")(device, instance, samples[which]);
  }
  // Between the two samples.
  double Mean(uint32_t metric) {
    const auto metrics = std::make_unique<gpusonde_nvml_gpm_metrics>();
    metrics->version = GPUSONDE_NVML_GPM_METRICS_GET_VERSION;
    metrics->count = 1;
    metrics->sample1 = samples[0];
    metrics->sample2 = samples[1];
    metrics->metrics[0].metric = metric;
    EXPECT_EQ(Function<gpusonde_nvml_gpm_metrics_fn>("nvmlGpmMetricsGet")(metrics.get()), 0);
    EXPECT_EQ(metrics->metrics[0].result, 0);
    return metrics->metrics[0].value;
  }
};

void SleepMs(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void BreakDevice(const std::string& fault) {
  const std::string command = std::string(SIMGPU_FOLDER) + "/../../bin/simgpu fault 0 " + fault;
  EXPECT_EQ(std::system(command.c_str()), 0) << fault;
}

TEST(Gpm, CountersFollowTheSmsThatKernelsOccupy) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    GpmReader reader;
    client.Load();
    ASSERT_TRUE(reader.Supported());
    constexpr unsigned kHalfOfTheSms = 66 * 8;  // blocks of 256 threads, of which 8 fill an SM
    client.Launch(1000 * kMs, client.stream, kHalfOfTheSms);
    SleepMs(20);
    ASSERT_EQ(reader.Take(0), 0);
    SleepMs(200);
    ASSERT_EQ(reader.Take(1), 0);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_SM_UTIL), 50, 1);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_SM_OCCUPANCY), 25, 1);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL), 20, 1);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_DRAM_BW_UTIL), 15, 1);
    EXPECT_EQ(reader.Mean(GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL), 0);
    client.cuStreamSynchronize(client.stream);
    ASSERT_EQ(reader.Take(0), 0);
    SleepMs(20);
    ASSERT_EQ(reader.Take(1), 0);
    EXPECT_EQ(reader.Mean(GPUSONDE_NVML_GPM_SM_UTIL), 0) << "idle";
  });
}

TEST(Gpm, CountersFollowTheBytesThatCopiesMove) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    GpmReader reader;
    uint64_t memory = 0;
    void* pinned = nullptr;
    constexpr size_t kBytes = 4'000'000'000;  // 77 ms
    ASSERT_EQ(client.cuMemAlloc_v2(&memory, kBytes), 0);
    ASSERT_EQ(client.cuMemAllocHost_v2(&pinned, kBytes), 0);
    for (int i = 0; i < 10; ++i) client.cuMemcpyHtoDAsync_v2(memory, pinned, kBytes, client.stream);
    SleepMs(10);
    ASSERT_EQ(reader.Take(0), 0);
    SleepMs(100);
    ASSERT_EQ(reader.Take(1), 0);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC) * (1 << 20), 52e9, 2e9);
    EXPECT_EQ(reader.Mean(GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC), 0);
    EXPECT_EQ(reader.Mean(GPUSONDE_NVML_GPM_SM_UTIL), 0);
    EXPECT_GT(reader.Mean(GPUSONDE_NVML_GPM_DRAM_BW_UTIL), 1);
  });
}

TEST(Gpm, WrongVersionsAndSamplesAreRefused) {
  const TestMachine machine;
  InChild({}, [] {
    GpmReader reader;
    gpusonde_nvml_gpm_support support{};
    EXPECT_EQ(
        reader.Function<gpusonde_nvml_gpm_support_fn>("nvmlGpmQueryDeviceSupport")(reader.device, &support),
        GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    const auto metrics = std::make_unique<gpusonde_nvml_gpm_metrics>();
    auto* get = reader.Function<gpusonde_nvml_gpm_metrics_fn>("nvmlGpmMetricsGet");
    EXPECT_EQ(get(metrics.get()), GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    metrics->version = GPUSONDE_NVML_GPM_METRICS_GET_VERSION;
    metrics->sample1 = reader.samples[0];
    metrics->sample2 = reader.samples[1];
    EXPECT_EQ(get(metrics.get()), GPUSONDE_NVML_ERROR_INVALID_ARGUMENT) << "not taken";
    EXPECT_EQ(reader.TakeOfInstance(0, 1), GPUSONDE_NVML_ERROR_NOT_SUPPORTED)
        << "the device has no instances";
    for (void* sample : reader.samples)
      EXPECT_EQ(reader.Function<gpusonde_nvml_gpm_free_fn>("nvmlGpmSampleFree")(sample), 0);
  });
}

TEST(Gpm, DevicesBeforeHopperHaveNone) {
  const TestMachine machine;
  InChild({{"SIMGPU_MODEL", "a100"}}, [] {
    GpmReader reader;
    EXPECT_FALSE(reader.Supported());
    EXPECT_EQ(reader.Take(0), GPUSONDE_NVML_ERROR_NOT_SUPPORTED);
  });
}

TEST(Gpm, ReadingCanBeMadeToFail) {
  const TestMachine machine;
  InChild({{"SIMGPU_GPM", "no-permission"}}, [] {
    GpmReader reader;
    EXPECT_TRUE(reader.Supported());
    EXPECT_EQ(reader.Take(0), GPUSONDE_NVML_ERROR_NO_PERMISSION);
  });
  InChild({{"SIMGPU_GPM", "unsupported"}}, [] { EXPECT_FALSE(GpmReader().Supported()); });
  InChild({}, [] {
    GpmReader reader;
    EXPECT_EQ(reader.Take(0), 0);
    BreakDevice("gpm-error 999");
    EXPECT_EQ(reader.Take(1), GPUSONDE_NVML_ERROR_UNKNOWN);
    BreakDevice("gpm-error 0");
    EXPECT_EQ(reader.Take(1), 0);
  });
}

TEST(Mig, ADeviceHasTwoInstances) {
  const TestMachine machine;
  InChild({{"SIMGPU_MIG", "1"}}, [] {
    Client client;
    GpmReader reader;
    client.Load();
    uint32_t mode = 0, pending = 0, most = 0;
    EXPECT_EQ(
        reader.Function<gpusonde_nvml_mig_mode_fn>("nvmlDeviceGetMigMode")(reader.device, &mode, &pending),
        0);
    EXPECT_EQ(mode, uint32_t{GPUSONDE_NVML_MIG_ENABLED});
    EXPECT_EQ(
        reader.Function<gpusonde_nvml_device_u32_fn>("nvmlDeviceGetMaxMigDeviceCount")(reader.device, &most),
        0);
    EXPECT_EQ(most, 7U);
    auto* by_index = reader.Function<gpusonde_nvml_mig_by_index_fn>("nvmlDeviceGetMigDeviceHandleByIndex");
    void* instance = nullptr;
    EXPECT_EQ(by_index(reader.device, 2, &instance), GPUSONDE_NVML_ERROR_NOT_FOUND);
    ASSERT_EQ(by_index(reader.device, 1, &instance), 0);
    std::array<char, GPUSONDE_NVML_NAME_BYTES> text{};
    EXPECT_EQ(reader.Function<gpusonde_nvml_device_text_fn>("nvmlDeviceGetName")(instance, text.data(), 96),
              0);
    EXPECT_EQ(std::string(text.data()), "Simulated H100 80GB HBM3 MIG 3g.40gb");
    EXPECT_EQ(reader.Function<gpusonde_nvml_device_text_fn>("nvmlDeviceGetUUID")(instance, text.data(), 96),
              0);
    EXPECT_TRUE(std::string(text.data()).starts_with("MIG-73696d75-")) << text.data();
    uint32_t id = 0;
    EXPECT_EQ(reader.Function<gpusonde_nvml_device_u32_fn>("nvmlDeviceGetGpuInstanceId")(instance, &id), 0);
    EXPECT_EQ(id, 2U);
    gpusonde_nvml_attributes attributes{};
    EXPECT_EQ(
        reader.Function<gpusonde_nvml_attributes_fn>("nvmlDeviceGetAttributes_v2")(instance, &attributes), 0);
    EXPECT_EQ(attributes.multiprocessors, 66U);
    gpusonde_nvml_memory memory{};
    EXPECT_EQ(reader.Function<gpusonde_nvml_memory_fn>("nvmlDeviceGetMemoryInfo")(instance, &memory), 0);
    EXPECT_EQ(memory.total >> 20, attributes.memory_mib);
    EXPECT_EQ(memory.used, 0U);
    gpusonde_nvml_utilization utilization{};
    EXPECT_EQ(reader.Function<gpusonde_nvml_utilization_fn>("nvmlDeviceGetUtilizationRates")(reader.device,
                                                                                             &utilization),
              GPUSONDE_NVML_ERROR_NOT_SUPPORTED);
    client.Launch(1000 * kMs, client.stream, 33 * 8);
    SleepMs(10);
    ASSERT_EQ(reader.TakeOfInstance(0, 1), 0);
    SleepMs(100);
    ASSERT_EQ(reader.TakeOfInstance(1, 1), 0);
    EXPECT_NEAR(reader.Mean(GPUSONDE_NVML_GPM_SM_UTIL), 50, 1) << "a quarter of the device";
    ASSERT_EQ(reader.TakeOfInstance(0, 2), 0);
    SleepMs(10);
    ASSERT_EQ(reader.TakeOfInstance(1, 2), 0);
    EXPECT_EQ(reader.Mean(GPUSONDE_NVML_GPM_SM_UTIL), 0) << "programs run on the first";
  });
}

TEST(Nvlink, CountersAndRemappedRowsShowFaults) {
  const TestMachine machine;
  InChild({}, [] {
    GpmReader reader;
    for (const char* fault : {"nvlink-replays 3", "nvlink-kib 100", "rows-corrected 2", "rows-uncorrected 1",
                              "rows-pending 1", "rows-failure 0"})
      BreakDevice(fault);
    std::array<gpusonde_nvml_field, 3> fields{};
    fields[0].field = GPUSONDE_NVML_FIELD_NVLINK_REPLAYS;
    fields[1].field = GPUSONDE_NVML_FIELD_NVLINK_DATA_RX;
    fields[1].scope = GPUSONDE_NVML_ALL_LINKS;
    fields[2].field = 1;
    EXPECT_EQ(reader.Function<gpusonde_nvml_field_values_fn>("nvmlDeviceGetFieldValues")(reader.device, 3,
                                                                                         fields.data()),
              0);
    EXPECT_EQ(fields[0].result, 0);
    EXPECT_EQ(fields[0].value.unsigned_long, 3U);
    EXPECT_EQ(fields[1].value.unsigned_long, 100U);
    EXPECT_EQ(fields[2].result, GPUSONDE_NVML_ERROR_NOT_SUPPORTED);
    std::array<uint32_t, 4> rows{};
    EXPECT_EQ(reader.Function<gpusonde_nvml_remapped_rows_fn>("nvmlDeviceGetRemappedRows")(
                  reader.device, &rows[0], &rows[1], &rows[2], &rows[3]),
              0);
    EXPECT_EQ(rows, (std::array<uint32_t, 4>{2, 1, 1, 0}));
  });
}

}  // namespace
}  // namespace simgpu::tests
