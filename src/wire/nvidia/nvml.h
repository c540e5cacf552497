/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVML's ABI that gpusonde uses (and simgpu simulates), declared by us: no CUDA package is needed
 * to build. Linux, 64 bit, drivers of CUDA 12 and 13.
 *
 * Source of every fact: NVIDIA's NVML API reference (docs.nvidia.com/deploy/nvml-api) and nvml.h 12.2.140 as
 * published in NVIDIA/go-nvml (gen/nvml/nvml.h). nvml_test.cpp compares each with nvml.h where that is
 * installed.
 *
 * Names are NVIDIA's, in our spelling: nvmlUtilization_t::gpu is gpusonde_nvml_utilization::gpu.
 * Enumerations are 32-bit integers, handles void *. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* nvmlReturn_t */
typedef int32_t gpusonde_nvml_result;
enum {
  GPUSONDE_NVML_SUCCESS = 0,
  GPUSONDE_NVML_ERROR_UNINITIALIZED = 1,
  GPUSONDE_NVML_ERROR_INVALID_ARGUMENT = 2,
  GPUSONDE_NVML_ERROR_NOT_SUPPORTED = 3,
  GPUSONDE_NVML_ERROR_NO_PERMISSION = 4,
  GPUSONDE_NVML_ERROR_NOT_FOUND = 6,
  GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE = 7,
  GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED = 9,
  GPUSONDE_NVML_ERROR_TIMEOUT = 10,
  GPUSONDE_NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  GPUSONDE_NVML_ERROR_GPU_IS_LOST = 15,
  GPUSONDE_NVML_ERROR_RESET_REQUIRED = 16,
  GPUSONDE_NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  GPUSONDE_NVML_ERROR_UNKNOWN = 999
};

/* nvmlClockType_t; the only sensor of nvmlTemperatureSensors_t; nvmlPcieUtilCounter_t */
enum {
  GPUSONDE_NVML_CLOCK_GRAPHICS = 0,
  GPUSONDE_NVML_CLOCK_SM = 1,
  GPUSONDE_NVML_CLOCK_MEM = 2,
  GPUSONDE_NVML_TEMPERATURE_GPU = 0,
  GPUSONDE_NVML_PCIE_TX_BYTES = 0, /* sent by the device */
  GPUSONDE_NVML_PCIE_RX_BYTES = 1,
  GPUSONDE_NVML_ERRORS_CORRECTED = 0, /* nvmlMemoryErrorType_t */
  GPUSONDE_NVML_ERRORS_UNCORRECTED = 1,
  GPUSONDE_NVML_VOLATILE_ECC = 0, /* nvmlEccCounterType_t: since the driver was loaded */
  GPUSONDE_NVML_AGGREGATE_ECC = 1 /* over the device's lifetime */
};

/* nvmlTemperatureThresholds_t */
enum { GPUSONDE_NVML_THRESHOLD_SHUTDOWN = 0, GPUSONDE_NVML_THRESHOLD_SLOWDOWN = 1 };

/* nvmlSamplingType_t */
enum {
  GPUSONDE_NVML_SAMPLES_POWER = 0,       /* mW */
  GPUSONDE_NVML_SAMPLES_UTILIZATION = 1, /* % */
  GPUSONDE_NVML_SAMPLES_MEMORY_UTILIZATION = 2
};

/* nvmlValueType_t, of nvmlDeviceGetSamples and nvmlDeviceGetFieldValues */
enum {
  GPUSONDE_NVML_VALUE_DOUBLE = 0,
  GPUSONDE_NVML_VALUE_UNSIGNED_INT = 1,
  GPUSONDE_NVML_VALUE_UNSIGNED_LONG = 2, /* 64 bits */
  GPUSONDE_NVML_VALUE_UNSIGNED_LONG_LONG = 3,
  GPUSONDE_NVML_VALUE_SIGNED_LONG_LONG = 4,
  GPUSONDE_NVML_VALUE_SIGNED_INT = 5,
  GPUSONDE_NVML_VALUE_UNSIGNED_SHORT = 6
};

/* NVML_FI_DEV_*: fields of nvmlDeviceGetFieldValues. Errors are counted over all links. */
enum {
  GPUSONDE_NVML_FIELD_NVLINK_CRC_FLIT_ERRORS = 38,
  GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS = 45,
  GPUSONDE_NVML_FIELD_NVLINK_REPLAYS = 52,
  GPUSONDE_NVML_FIELD_NVLINK_RECOVERIES = 59,
  GPUSONDE_NVML_FIELD_NVLINK_DATA_TX = 138, /* KiB; the scope is a link, or GPUSONDE_NVML_ALL_LINKS */
  GPUSONDE_NVML_FIELD_NVLINK_DATA_RX = 139
};
#define GPUSONDE_NVML_ALL_LINKS UINT32_MAX

/* nvmlGpmMetricId_t: percentages are 0 to 100, rates MiB/s */
enum {
  GPUSONDE_NVML_GPM_SM_UTIL = 2,
  GPUSONDE_NVML_GPM_SM_OCCUPANCY = 3,
  GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL = 5,
  GPUSONDE_NVML_GPM_DFMA_TENSOR_UTIL = 6,
  GPUSONDE_NVML_GPM_HMMA_TENSOR_UTIL = 7,
  GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL = 9,
  GPUSONDE_NVML_GPM_DRAM_BW_UTIL = 10,
  GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC = 20,
  GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC = 21,
  GPUSONDE_NVML_GPM_NVLINK_TOTAL_RX_PER_SEC = 60,
  GPUSONDE_NVML_GPM_NVLINK_TOTAL_TX_PER_SEC = 61
};

/* NVML_DEVICE_MIG_* */
enum { GPUSONDE_NVML_MIG_DISABLED = 0, GPUSONDE_NVML_MIG_ENABLED = 1 };

/* nvmlClocksThrottleReason*, since driver 535 nvmlClocksEventReason*: bits */
#define GPUSONDE_NVML_THROTTLE_GPU_IDLE 0x1ull
#define GPUSONDE_NVML_THROTTLE_APPLICATION_CLOCKS 0x2ull
#define GPUSONDE_NVML_THROTTLE_SW_POWER_CAP 0x4ull
#define GPUSONDE_NVML_THROTTLE_HW_SLOWDOWN 0x8ull
#define GPUSONDE_NVML_THROTTLE_SYNC_BOOST 0x10ull
#define GPUSONDE_NVML_THROTTLE_SW_THERMAL 0x20ull
#define GPUSONDE_NVML_THROTTLE_HW_THERMAL 0x40ull
#define GPUSONDE_NVML_THROTTLE_HW_POWER_BRAKE 0x80ull
#define GPUSONDE_NVML_THROTTLE_DISPLAY_CLOCKS 0x100ull

/* nvmlEventType*: bits */
#define GPUSONDE_NVML_EVENT_SINGLE_BIT_ECC 0x1ull
#define GPUSONDE_NVML_EVENT_DOUBLE_BIT_ECC 0x2ull
#define GPUSONDE_NVML_EVENT_PSTATE 0x4ull
#define GPUSONDE_NVML_EVENT_XID 0x8ull
#define GPUSONDE_NVML_EVENT_CLOCK 0x10ull

#define GPUSONDE_NVML_NAME_BYTES 96            /* NVML_DEVICE_NAME_V2_BUFFER_SIZE */
#define GPUSONDE_NVML_UUID_BYTES 96            /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
#define GPUSONDE_NVML_VERSION_BYTES 80         /* NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE */
#define GPUSONDE_NVML_NOT_AVAILABLE UINT64_MAX /* NVML_VALUE_NOT_AVAILABLE, of memory */

/* nvmlUtilization_t: % of the time of the last sample period (1/6 s to 1 s) */
struct gpusonde_nvml_utilization {
  uint32_t gpu;    /* with at least one kernel running */
  uint32_t memory; /* with the device's memory being read or written */
};

/* nvmlMemory_t */
struct gpusonde_nvml_memory {
  uint64_t total;
  uint64_t free;
  uint64_t used; /* includes what the driver reserves for itself */
};

/* nvmlMemory_v2_t */
#define GPUSONDE_NVML_MEMORY_V2 0x2000028u /* of `version`: the size, 40, and 2 << 24 */
struct gpusonde_nvml_memory_v2 {
  uint32_t version;
  uint64_t total;
  uint64_t reserved;
  uint64_t free;
  uint64_t used;
};

/* nvmlPciInfo_t */
struct gpusonde_nvml_pci_info {
  char bus_id_legacy[16];
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t pci_device_id;
  uint32_t pci_subsystem_id;
  char bus_id[32]; /* "00000000:81:00.0" */
};

/* nvmlProcessInfo_v2_t, of nvmlDeviceGetComputeRunningProcesses_v3 */
struct gpusonde_nvml_process {
  uint32_t pid;
  uint64_t used_bytes;
  uint32_t gpu_instance_id; /* UINT32_MAX without MIG */
  uint32_t compute_instance_id;
};

/* nvmlProcessUtilizationSample_t */
struct gpusonde_nvml_process_sample {
  uint32_t pid;
  uint64_t time_us; /* "CPU timestamp", of an unspecified clock */
  uint32_t sm;      /* % */
  uint32_t memory;
  uint32_t encoder;
  uint32_t decoder;
};

/* nvmlSample_t; the value is a union of 8 bytes, discriminated by nvmlValueType_t */
struct gpusonde_nvml_sample {
  uint64_t time_us;
  union {
    double floating;
    uint32_t unsigned_int;
    uint64_t unsigned_long;
    int64_t signed_long;
  } value;
};

/* nvmlEventData_t */
struct gpusonde_nvml_event {
  void* device;
  uint64_t type;
  uint64_t data; /* of XID events: the code; 999 for an unknown one */
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
};

/* nvmlFieldValue_t; the value is the union of nvmlSample_t, discriminated by its type */
struct gpusonde_nvml_field {
  uint32_t field; /* in */
  uint32_t scope; /* in: such as a link; `unused`, 0, before NVML 11 */
  int64_t time_us;
  int64_t latency_us;
  int32_t value_type;
  gpusonde_nvml_result result; /* the value is valid if this is SUCCESS */
  union {
    double floating;
    uint32_t unsigned_int;
    uint64_t unsigned_long;
    int64_t signed_long;
    int32_t signed_int;
    uint16_t unsigned_short;
  } value;
};

/* nvmlGpmMetric_t */
struct gpusonde_nvml_gpm_metric {
  uint32_t metric;             /* in */
  gpusonde_nvml_result result; /* the value is valid if this is SUCCESS */
  double value;
  const char* short_name; /* nvmlGpmMetricMetricInfo_t; each may be null */
  const char* long_name;
  const char* unit;
};

/* nvmlGpmMetricsGet_t. NVML_GPM_METRIC_MAX is 98 in nvml.h 12.2 and 333 in 13.0, both with version 1: the
 * larger one is room enough for either library. */
#define GPUSONDE_NVML_GPM_METRICS 333
#define GPUSONDE_NVML_GPM_METRICS_GET_VERSION 1u
struct gpusonde_nvml_gpm_metrics {
  uint32_t version; /* in */
  uint32_t count;   /* in: how many of `metrics` */
  void* sample1;    /* in: nvmlGpmSample_t, the earlier one */
  void* sample2;
  struct gpusonde_nvml_gpm_metric metrics[GPUSONDE_NVML_GPM_METRICS];
};

/* nvmlGpmSupport_t */
#define GPUSONDE_NVML_GPM_SUPPORT_VERSION 1u
struct gpusonde_nvml_gpm_support {
  uint32_t version; /* in */
  uint32_t supported;
};

/* nvmlDeviceAttributes_t, of a MIG instance */
struct gpusonde_nvml_attributes {
  uint32_t multiprocessors;
  uint32_t copy_engines;
  uint32_t decoders;
  uint32_t encoders;
  uint32_t jpeg_engines;
  uint32_t ofa_engines;
  uint32_t gpu_instance_slices;
  uint32_t compute_instance_slices;
  uint64_t memory_mib;
};

/* The function types. dlsym finds each function by the name in the comment; simgpu defines the functions.
 * `device` is an nvmlDevice_t. */
typedef gpusonde_nvml_result gpusonde_nvml_plain_fn(void); /* nvmlInit_v2, nvmlShutdown */
typedef const char* gpusonde_nvml_error_string_fn(gpusonde_nvml_result result); /* nvmlErrorString */
typedef gpusonde_nvml_result gpusonde_nvml_system_text_fn(
    char* text, uint32_t bytes); /* nvmlSystemGetDriverVersion, nvmlSystemGetNVMLVersion */
typedef gpusonde_nvml_result gpusonde_nvml_count_fn(uint32_t* count); /* nvmlDeviceGetCount_v2 */
typedef gpusonde_nvml_result gpusonde_nvml_by_index_fn(uint32_t index,
                                                       void** device); /* nvmlDeviceGetHandleByIndex_v2 */
typedef gpusonde_nvml_result gpusonde_nvml_device_text_fn(void* device, char* text,
                                                          uint32_t bytes); /* nvmlDeviceGetName, …UUID */
typedef gpusonde_nvml_result gpusonde_nvml_pci_info_fn(
    void* device, struct gpusonde_nvml_pci_info* info); /* nvmlDeviceGetPciInfo_v3 */
/* nvmlDeviceGetPowerUsage and …EnforcedPowerLimit (mW), …CurrPcieLinkGeneration, …CurrPcieLinkWidth,
 * …PcieReplayCounter, …NumGpuCores, …PersistenceMode, …PerformanceState, …Index, …MinorNumber,
 * …MaxMigDeviceCount, …GpuInstanceId and …ComputeInstanceId (of a MIG instance) */
typedef gpusonde_nvml_result gpusonde_nvml_device_u32_fn(void* device, uint32_t* value);
/* nvmlDeviceGetTotalEnergyConsumption (mJ), …CurrentClocksThrottleReasons, …CurrentClocksEventReasons,
 * …SupportedEventTypes */
typedef gpusonde_nvml_result gpusonde_nvml_device_u64_fn(void* device, uint64_t* value);
/* nvmlDeviceGetClockInfo and …MaxClockInfo (MHz), …Temperature (°C), …TemperatureThreshold, …PcieThroughput
 * (KB/s) */
typedef gpusonde_nvml_result gpusonde_nvml_device_which_u32_fn(void* device, uint32_t which, uint32_t* value);
typedef gpusonde_nvml_result gpusonde_nvml_total_ecc_fn(void* device, uint32_t error_type,
                                                        uint32_t counter_type,
                                                        uint64_t* count); /* nvmlDeviceGetTotalEccErrors */
typedef gpusonde_nvml_result gpusonde_nvml_utilization_fn(
    void* device, struct gpusonde_nvml_utilization* utilization); /* nvmlDeviceGetUtilizationRates */
typedef gpusonde_nvml_result gpusonde_nvml_memory_fn(
    void* device, struct gpusonde_nvml_memory* memory); /* nvmlDeviceGetMemoryInfo */
typedef gpusonde_nvml_result gpusonde_nvml_memory_v2_fn(
    void* device, struct gpusonde_nvml_memory_v2* memory); /* nvmlDeviceGetMemoryInfo_v2 */
/* nvmlDeviceGetComputeRunningProcesses_v3: *count is the capacity on entry and the number on return;
 * INSUFFICIENT_SIZE when there are more */
typedef gpusonde_nvml_result gpusonde_nvml_processes_fn(void* device, uint32_t* count,
                                                        struct gpusonde_nvml_process* processes);
/* nvmlDeviceGetProcessUtilization: samples newer than last_seen_us. NOT_FOUND when there is none; with a null
 * buffer, INSUFFICIENT_SIZE and the capacity needed */
typedef gpusonde_nvml_result gpusonde_nvml_process_utilization_fn(
    void* device, struct gpusonde_nvml_process_sample* samples, uint32_t* count, uint64_t last_seen_us);
/* nvmlDeviceGetSamples: likewise */
typedef gpusonde_nvml_result gpusonde_nvml_samples_fn(void* device, uint32_t type, uint64_t last_seen_us,
                                                      uint32_t* value_type, uint32_t* count,
                                                      struct gpusonde_nvml_sample* samples);
typedef gpusonde_nvml_result gpusonde_nvml_event_set_create_fn(void** set); /* nvmlEventSetCreate */
typedef gpusonde_nvml_result gpusonde_nvml_register_events_fn(void* device, uint64_t types,
                                                              void* set); /* nvmlDeviceRegisterEvents */
typedef gpusonde_nvml_result gpusonde_nvml_event_set_wait_fn(void* set, struct gpusonde_nvml_event* event,
                                                             uint32_t timeout_ms); /* nvmlEventSetWait_v2 */
typedef gpusonde_nvml_result gpusonde_nvml_event_set_free_fn(void* set);           /* nvmlEventSetFree */
/* nvmlDeviceGetFieldValues: SUCCESS if any field was looked up; each has its own result */
typedef gpusonde_nvml_result gpusonde_nvml_field_values_fn(void* device, int32_t count,
                                                           struct gpusonde_nvml_field* fields);
/* nvmlDeviceGetRemappedRows: *pending and *failure are 0 or 1 */
typedef gpusonde_nvml_result gpusonde_nvml_remapped_rows_fn(void* device, uint32_t* corrected,
                                                            uint32_t* uncorrected, uint32_t* pending,
                                                            uint32_t* failure);
typedef gpusonde_nvml_result gpusonde_nvml_mig_mode_fn(void* device, uint32_t* current,
                                                       uint32_t* pending); /* nvmlDeviceGetMigMode */
/* nvmlDeviceGetMigDeviceHandleByIndex: NOT_FOUND where there is no instance of this index */
typedef gpusonde_nvml_result gpusonde_nvml_mig_by_index_fn(void* device, uint32_t index, void** instance);
typedef gpusonde_nvml_result gpusonde_nvml_attributes_fn(
    void* device, struct gpusonde_nvml_attributes* attributes); /* nvmlDeviceGetAttributes_v2 */
typedef gpusonde_nvml_result gpusonde_nvml_gpm_support_fn(
    void* device, struct gpusonde_nvml_gpm_support* support);           /* nvmlGpmQueryDeviceSupport */
typedef gpusonde_nvml_result gpusonde_nvml_gpm_alloc_fn(void** sample); /* nvmlGpmSampleAlloc */
typedef gpusonde_nvml_result gpusonde_nvml_gpm_free_fn(void* sample);   /* nvmlGpmSampleFree */
typedef gpusonde_nvml_result gpusonde_nvml_gpm_sample_fn(void* device, void* sample); /* nvmlGpmSampleGet */
/* nvmlGpmMigSampleGet: `device` is the parent of the GPU instance */
typedef gpusonde_nvml_result gpusonde_nvml_gpm_mig_sample_fn(void* device, uint32_t gpu_instance,
                                                             void* sample);
typedef gpusonde_nvml_result gpusonde_nvml_gpm_metrics_fn(
    struct gpusonde_nvml_gpm_metrics* metrics); /* nvmlGpmMetricsGet */

#ifdef __cplusplus
}
#endif
