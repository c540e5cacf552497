// SPDX-License-Identifier: Apache-2.0
// Compares our declarations of NVML's ABI with NVIDIA's nvml.h, where the build found one (few toolkits have
// it).
#include "wire/nvidia/nvml.h"

#include <gtest/gtest.h>

#include <cstddef>

#ifdef GPUSONDE_NVML_HEADER

#include <nvml.h>

#include <utility>

namespace {

#define SAME_VALUE(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define SAME_FIELD(ours, field, theirs, their_field)                      \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field) && \
                sizeof(std::declval<ours&>().field) == sizeof(std::declval<theirs&>().their_field))

SAME_VALUE(GPUSONDE_NVML_SUCCESS, NVML_SUCCESS);
#define SAME_ERROR(name) SAME_VALUE(GPUSONDE_NVML_ERROR_##name, NVML_ERROR_##name)
SAME_ERROR(UNINITIALIZED);
SAME_ERROR(INVALID_ARGUMENT);
SAME_ERROR(NOT_SUPPORTED);
SAME_ERROR(NO_PERMISSION);
SAME_ERROR(NOT_FOUND);
SAME_ERROR(INSUFFICIENT_SIZE);
SAME_ERROR(DRIVER_NOT_LOADED);
SAME_ERROR(TIMEOUT);
SAME_ERROR(FUNCTION_NOT_FOUND);
SAME_ERROR(GPU_IS_LOST);
SAME_ERROR(RESET_REQUIRED);
SAME_ERROR(LIB_RM_VERSION_MISMATCH);
SAME_ERROR(ARGUMENT_VERSION_MISMATCH);

SAME_VALUE(GPUSONDE_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME_VALUE(GPUSONDE_NVML_CLOCK_MEM, NVML_CLOCK_MEM);
SAME_VALUE(GPUSONDE_NVML_PCIE_TX_BYTES, NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(GPUSONDE_NVML_PCIE_RX_BYTES, NVML_PCIE_UTIL_RX_BYTES);
SAME_VALUE(GPUSONDE_NVML_ERRORS_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_VALUE(GPUSONDE_NVML_ERRORS_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_VALUE(GPUSONDE_NVML_VOLATILE_ECC, NVML_VOLATILE_ECC);
SAME_VALUE(GPUSONDE_NVML_AGGREGATE_ECC, NVML_AGGREGATE_ECC);
SAME_VALUE(GPUSONDE_NVML_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(GPUSONDE_NVML_SAMPLES_POWER, NVML_TOTAL_POWER_SAMPLES);
SAME_VALUE(GPUSONDE_NVML_SAMPLES_UTILIZATION, NVML_GPU_UTILIZATION_SAMPLES);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_GPU_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_SW_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(GPUSONDE_NVML_THROTTLE_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(GPUSONDE_NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME_VALUE(GPUSONDE_NVML_VALUE_UNSIGNED_LONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(GPUSONDE_NVML_VALUE_SIGNED_LONG_LONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_CRC_FLIT_ERRORS, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_REPLAYS, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_RECOVERIES, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(GPUSONDE_NVML_FIELD_NVLINK_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME_VALUE(GPUSONDE_NVML_MIG_ENABLED, NVML_DEVICE_MIG_ENABLE);
SAME_VALUE(GPUSONDE_NVML_GPM_SM_UTIL, NVML_GPM_METRIC_SM_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_SM_OCCUPANCY, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME_VALUE(GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_DFMA_TENSOR_UTIL, NVML_GPM_METRIC_DFMA_TENSOR_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_HMMA_TENSOR_UTIL, NVML_GPM_METRIC_HMMA_TENSOR_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL, NVML_GPM_METRIC_IMMA_TENSOR_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_DRAM_BW_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME_VALUE(GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_VALUE(GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_VALUE(GPUSONDE_NVML_GPM_NVLINK_TOTAL_RX_PER_SEC, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME_VALUE(GPUSONDE_NVML_GPM_NVLINK_TOTAL_TX_PER_SEC, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
SAME_VALUE(GPUSONDE_NVML_GPM_METRICS_GET_VERSION, NVML_GPM_METRICS_GET_VERSION);
SAME_VALUE(GPUSONDE_NVML_GPM_SUPPORT_VERSION, NVML_GPM_SUPPORT_VERSION);
static_assert(GPUSONDE_NVML_GPM_METRICS >= NVML_GPM_METRIC_MAX,
              "there is room for what the library may write");

SAME_VALUE(sizeof(gpusonde_nvml_utilization), sizeof(nvmlUtilization_t));
SAME_VALUE(sizeof(gpusonde_nvml_memory), sizeof(nvmlMemory_t));
SAME_FIELD(gpusonde_nvml_memory, used, nvmlMemory_t, used);
SAME_VALUE(sizeof(gpusonde_nvml_memory_v2), sizeof(nvmlMemory_v2_t));
SAME_FIELD(gpusonde_nvml_memory_v2, used, nvmlMemory_v2_t, used);
SAME_VALUE(GPUSONDE_NVML_MEMORY_V2, nvmlMemory_v2);
SAME_VALUE(sizeof(gpusonde_nvml_pci_info), sizeof(nvmlPciInfo_t));
SAME_FIELD(gpusonde_nvml_pci_info, bus_id, nvmlPciInfo_t, busId);
SAME_VALUE(sizeof(gpusonde_nvml_process), sizeof(nvmlProcessInfo_t));
SAME_FIELD(gpusonde_nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_VALUE(sizeof(gpusonde_nvml_process_sample), sizeof(nvmlProcessUtilizationSample_t));
SAME_FIELD(gpusonde_nvml_process_sample, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME_VALUE(sizeof(gpusonde_nvml_sample), sizeof(nvmlSample_t));
SAME_FIELD(gpusonde_nvml_sample, value, nvmlSample_t, sampleValue);
SAME_VALUE(sizeof(gpusonde_nvml_event), sizeof(nvmlEventData_t));
SAME_FIELD(gpusonde_nvml_event, data, nvmlEventData_t, eventData);
SAME_VALUE(sizeof(gpusonde_nvml_field), sizeof(nvmlFieldValue_t));
SAME_FIELD(gpusonde_nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_FIELD(gpusonde_nvml_field, value_type, nvmlFieldValue_t, valueType);
SAME_FIELD(gpusonde_nvml_field, result, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(gpusonde_nvml_field, value, nvmlFieldValue_t, value);
SAME_VALUE(sizeof(gpusonde_nvml_gpm_metric), sizeof(nvmlGpmMetric_t));
SAME_FIELD(gpusonde_nvml_gpm_metric, result, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(gpusonde_nvml_gpm_metric, value, nvmlGpmMetric_t, value);
SAME_FIELD(gpusonde_nvml_gpm_metrics, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(gpusonde_nvml_gpm_metrics, sample2, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(gpusonde_nvml_gpm_metrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));
SAME_VALUE(sizeof(gpusonde_nvml_gpm_support), sizeof(nvmlGpmSupport_t));
SAME_VALUE(sizeof(gpusonde_nvml_attributes), sizeof(nvmlDeviceAttributes_t));
SAME_FIELD(gpusonde_nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);

}  // namespace

#endif

TEST(NvmlAbi, MatchesNvidiasHeader) {
#ifdef GPUSONDE_NVML_HEADER
  SUCCEED() << "compared by static_assert with NVML " << NVML_API_VERSION;
#else
  GTEST_SKIP() << "this machine has no nvml.h to compare with";
#endif
}

// The layouts of structs that are read and written field by field, on 64-bit Linux, without nvml.h too.
static_assert(sizeof(gpusonde_nvml_field) == 40);
static_assert(offsetof(gpusonde_nvml_field, scope) == 4 && offsetof(gpusonde_nvml_field, time_us) == 8 &&
              offsetof(gpusonde_nvml_field, latency_us) == 16 &&
              offsetof(gpusonde_nvml_field, value_type) == 24 &&
              offsetof(gpusonde_nvml_field, result) == 28 && offsetof(gpusonde_nvml_field, value) == 32);
static_assert(sizeof(gpusonde_nvml_gpm_metric) == 40);
static_assert(offsetof(gpusonde_nvml_gpm_metric, result) == 4 &&
              offsetof(gpusonde_nvml_gpm_metric, value) == 8 &&
              offsetof(gpusonde_nvml_gpm_metric, short_name) == 16 &&
              offsetof(gpusonde_nvml_gpm_metric, unit) == 32);
static_assert(sizeof(gpusonde_nvml_gpm_metrics) == 24 + 333 * 40);
static_assert(offsetof(gpusonde_nvml_gpm_metrics, count) == 4 &&
              offsetof(gpusonde_nvml_gpm_metrics, sample1) == 8 &&
              offsetof(gpusonde_nvml_gpm_metrics, sample2) == 16 &&
              offsetof(gpusonde_nvml_gpm_metrics, metrics) == 24);
static_assert(sizeof(gpusonde_nvml_gpm_support) == 8 && offsetof(gpusonde_nvml_gpm_support, supported) == 4);
static_assert(sizeof(gpusonde_nvml_attributes) == 40 && offsetof(gpusonde_nvml_attributes, memory_mib) == 32);

// The documented layouts, checked even without nvml.h: sizes of C structs on 64-bit Linux.
TEST(NvmlAbi, LayoutsMatchTheDocumentation) {
  EXPECT_EQ(sizeof(gpusonde_nvml_memory), 24U);
  EXPECT_EQ(sizeof(gpusonde_nvml_memory_v2), GPUSONDE_NVML_MEMORY_V2 & 0xFFFFFF);
  EXPECT_EQ(sizeof(gpusonde_nvml_pci_info), 68U);
  EXPECT_EQ(sizeof(gpusonde_nvml_process), 24U);
  EXPECT_EQ(sizeof(gpusonde_nvml_process_sample), 32U);
  EXPECT_EQ(sizeof(gpusonde_nvml_sample), 16U);
  EXPECT_EQ(sizeof(gpusonde_nvml_event), 32U);
}
