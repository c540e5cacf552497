// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "exporters/prometheus/text.h"
#include "model/metric_catalogue.h"

// Every metric of the exposition; docs/metrics.md is generated from these tables.
namespace gpusonde::exporters::prometheus {

// A metric of NVML as dcgm-exporter names it, where both mean the same; a MIG instance has the label GPU_I_ID
// (https://github.com/NVIDIA/dcgm-exporter, etc/default-counters.csv, and DCGM's field identifiers).
struct DcgmFamily {
  model::Metric metric;
  Family family;
  double scale = 1;    // from the catalogue's unit to DCGM's
  double divisor = 1;  // likewise, where a factor would be a fraction that is not exact
};

inline constexpr double kMebibytesPerByte = 1.0 / (1 << 20);
inline constexpr double kPercentPerRatio = 100;

// By name. The help texts state DCGM's units.
inline constexpr std::array kDcgmFamilies = {
    DcgmFamily{model::Metric::kGpuThrottleReasons,
               {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Type::kGauge,
                "why the clocks are not higher: a sum of bits, as in gpu.throttle.reasons"}},
    DcgmFamily{model::Metric::kGpuRowsCorrected,
               {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Type::kCounter,
                "rows of memory that were replaced after corrected errors, over the device's lifetime"}},
    DcgmFamily{model::Metric::kGpuEccUncorrected,
               {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Type::kCounter,
                "memory errors that could not be corrected since the driver was loaded"}},
    DcgmFamily{model::Metric::kGpuEccCorrected,
               {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Type::kCounter,
                "memory errors corrected since the driver was loaded"}},
    DcgmFamily{model::Metric::kGpuMemoryUsed,
               {"DCGM_FI_DEV_FB_USED", Type::kGauge, "device memory in use, in MiB"},
               kMebibytesPerByte},
    DcgmFamily{model::Metric::kGpuTemperature,
               {"DCGM_FI_DEV_GPU_TEMP", Type::kGauge, "temperature of the chip, in degrees Celsius"}},
    DcgmFamily{model::Metric::kGpuUtilization,
               {"DCGM_FI_DEV_GPU_UTIL", Type::kGauge,
                "share of the driver's last sample period in which a kernel was running, in percent"}},
    DcgmFamily{model::Metric::kGpuClockMemory,
               {"DCGM_FI_DEV_MEM_CLOCK", Type::kGauge, "clock of the device's memory, in MHz"}},
    DcgmFamily{model::Metric::kGpuMemoryUtilization,
               {"DCGM_FI_DEV_MEM_COPY_UTIL", Type::kGauge,
                "share of the driver's last sample period in which memory was read or written, in percent"}},
    DcgmFamily{model::Metric::kGpuNvlinkCrcData,
               {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", Type::kCounter,
                "checksum errors in the data of all NVLinks"}},
    DcgmFamily{model::Metric::kGpuNvlinkCrcFlit,
               {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", Type::kCounter,
                "checksum errors in the flow control of all NVLinks"}},
    DcgmFamily{model::Metric::kGpuNvlinkRecoveries,
               {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", Type::kCounter,
                "times that an NVLink had to be trained again"}},
    DcgmFamily{model::Metric::kGpuNvlinkReplays,
               {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", Type::kCounter,
                "times that data had to be sent over an NVLink again"}},
    DcgmFamily{model::Metric::kGpuPcieGeneration,
               {"DCGM_FI_DEV_PCIE_LINK_GEN", Type::kGauge, "current generation of the PCIe link"}},
    DcgmFamily{model::Metric::kGpuPcieWidth,
               {"DCGM_FI_DEV_PCIE_LINK_WIDTH", Type::kGauge, "lanes of the PCIe link in use"}},
    DcgmFamily{model::Metric::kGpuPcieReplays,
               {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Type::kCounter,
                "packets that had to be sent over the PCIe link again"}},
    DcgmFamily{model::Metric::kGpuPowerLimit,
               {"DCGM_FI_DEV_POWER_MGMT_LIMIT", Type::kGauge,
                "power at which the driver lowers the clocks, in watts"}},
    DcgmFamily{model::Metric::kGpuPower,
               {"DCGM_FI_DEV_POWER_USAGE", Type::kGauge, "power that the whole board draws, in watts"}},
    DcgmFamily{model::Metric::kGpuRowsFailure,
               {"DCGM_FI_DEV_ROW_REMAP_FAILURE", Type::kGauge, "1: a row of memory could not be replaced"}},
    DcgmFamily{model::Metric::kGpuRowsPending,
               {"DCGM_FI_DEV_ROW_REMAP_PENDING", Type::kGauge,
                "1: a row of memory will be replaced when the device is reset"}},
    DcgmFamily{model::Metric::kGpuTemperatureSlowdown,
               {"DCGM_FI_DEV_SLOWDOWN_TEMP", Type::kGauge,
                "temperature at which the device slows down, in degrees Celsius"}},
    DcgmFamily{model::Metric::kGpuClockSm,
               {"DCGM_FI_DEV_SM_CLOCK", Type::kGauge, "clock of the streaming multiprocessors, in MHz"}},
    DcgmFamily{model::Metric::kGpuEnergy,
               {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Type::kCounter,
                "energy used since the driver was loaded, in mJ"},
               1000},
    DcgmFamily{
        model::Metric::kGpuRowsUncorrected,
        {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Type::kCounter,
         "rows of memory that were replaced after errors that could not be corrected, over the device's "
         "lifetime"}},
    DcgmFamily{model::Metric::kGpuDramActive,
               {"DCGM_FI_PROF_DRAM_ACTIVE", Type::kGauge,
                "share of the greatest bandwidth of device memory that was used, 0 to 1"},
               1,
               kPercentPerRatio},
    DcgmFamily{model::Metric::kGpuNvlinkRx,
               {"DCGM_FI_PROF_NVLINK_RX_BYTES", Type::kGauge,
                "mean data rate received over all NVLinks, in bytes/s"}},
    DcgmFamily{
        model::Metric::kGpuNvlinkTx,
        {"DCGM_FI_PROF_NVLINK_TX_BYTES", Type::kGauge, "mean data rate sent over all NVLinks, in bytes/s"}},
    DcgmFamily{model::Metric::kGpuPcieRxMean,
               {"DCGM_FI_PROF_PCIE_RX_BYTES", Type::kGauge,
                "mean data rate received over the PCIe link, in bytes/s"}},
    DcgmFamily{
        model::Metric::kGpuPcieTxMean,
        {"DCGM_FI_PROF_PCIE_TX_BYTES", Type::kGauge, "mean data rate sent over the PCIe link, in bytes/s"}},
    DcgmFamily{model::Metric::kGpuTensorActive,
               {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Type::kGauge,
                "share of the time in which the tensor cores worked, 0 to 1"},
               1,
               kPercentPerRatio},
    DcgmFamily{
        model::Metric::kGpuTensorDfma,
        {"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", Type::kGauge, "the same for 64-bit floating point, 0 to 1"},
        1,
        kPercentPerRatio},
    DcgmFamily{model::Metric::kGpuTensorHmma,
               {"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", Type::kGauge,
                "the same for floating point of fewer bits, 0 to 1"},
               1,
               kPercentPerRatio},
    DcgmFamily{model::Metric::kGpuTensorImma,
               {"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", Type::kGauge, "the same for integers, 0 to 1"},
               1,
               kPercentPerRatio},
    DcgmFamily{model::Metric::kGpuSmActive,
               {"DCGM_FI_PROF_SM_ACTIVE", Type::kGauge, "share of SMs with at least one warp, 0 to 1"},
               1,
               kPercentPerRatio},
    DcgmFamily{model::Metric::kGpuSmOccupancy,
               {"DCGM_FI_PROF_SM_OCCUPANCY", Type::kGauge,
                "warps on the SMs as a share of the most that they can hold, 0 to 1"},
               1,
               kPercentPerRatio},
};
// Of events, hence not a value of the table above.
inline constexpr Family kLastXid{"DCGM_FI_DEV_XID_ERRORS", Type::kGauge,
                                 "code of the last XID error since gpusonde was started; 0: none"};

inline constexpr Family kGpuKernels{"gpusonde_gpu_kernels_total", Type::kCounter,
                                    "kernels that ran on the device; as all counters of GPU work, without "
                                    "what ran while a process wasn't profiled"};
inline constexpr Family kGpuKernelSeconds{
    "gpusonde_gpu_kernel_seconds_total", Type::kCounter,
    "sum of the durations of kernels; more than the time that passed where kernels overlap"};
inline constexpr Family kGpuCopies{"gpusonde_gpu_copies_total", Type::kCounter, "memory copies"};
inline constexpr Family kGpuCopyBytes{"gpusonde_gpu_copy_bytes_total", Type::kCounter, "bytes copied"};
inline constexpr Family kGpuCopySeconds{"gpusonde_gpu_copy_seconds_total", Type::kCounter,
                                        "sum of the durations of memory copies"};
inline constexpr Family kGpuSets{"gpusonde_gpu_sets_total", Type::kCounter, "memory sets"};
inline constexpr Family kGpuSetBytes{"gpusonde_gpu_set_bytes_total", Type::kCounter, "bytes set"};
inline constexpr Family kGpuSetSeconds{"gpusonde_gpu_set_seconds_total", Type::kCounter,
                                       "sum of the durations of memory sets"};
inline constexpr Family kGpuPcieReceived{"gpusonde_gpu_pcie_received_bytes_per_second", Type::kGauge,
                                         "data rate received over the PCIe link, over 20 ms"};
inline constexpr Family kGpuPcieSent{"gpusonde_gpu_pcie_sent_bytes_per_second", Type::kGauge,
                                     "data rate sent over the PCIe link, over 20 ms"};
inline constexpr Family kGpuXids{"gpusonde_gpu_xid_errors_total", Type::kCounter,
                                 "XID errors that the driver reported, by code"};

inline constexpr Family kProcessGpuKernels{"gpusonde_process_gpu_kernels_total", Type::kCounter,
                                           "kernels of a process, while it was profiled"};
inline constexpr Family kProcessGpuKernelSeconds{"gpusonde_process_gpu_kernel_seconds_total", Type::kCounter,
                                                 "sum of the durations of a process's kernels"};
inline constexpr Family kProcessGpuCopyBytes{"gpusonde_process_gpu_copy_bytes_total", Type::kCounter,
                                             "bytes that a process copied"};
inline constexpr Family kProcessGpuCopySeconds{"gpusonde_process_gpu_copy_seconds_total", Type::kCounter,
                                               "sum of the durations of a process's copies"};
inline constexpr Family kProcessGpuMemory{"gpusonde_process_gpu_memory_bytes", Type::kGauge,
                                          "device memory in use by a process"};
inline constexpr Family kProcessLaunches{
    "gpusonde_process_launches_total", Type::kCounter,
    "calls that launched GPU work; an estimate, as only sampled calls are recorded"};
inline constexpr Family kProcessCpuSeconds{
    "gpusonde_process_cpu_seconds_total", Type::kCounter,
    "CPU time by sampling; since a process used a GPU for the first time, before that it is in other"};
inline constexpr Family kProcessOverheadBudget{
    "gpusonde_process_listening_budget_ratio", Type::kGauge,
    "by how much GPU profiling may slow the process down (`--overhead`)"};
inline constexpr Family kProcessOverheadSpent{
    "gpusonde_process_listening_spent_ratio", Type::kGauge,
    "by how much GPU profiling slowed it down lately, its pauses included"};
inline constexpr Family kProcessOverheadCost{
    "gpusonde_process_listening_cost_ratio", Type::kGauge,
    "by how much GPU profiling slows it down while active, estimated; absent until it is known"};
inline constexpr Family kProcessOverheadCostLow{"gpusonde_process_listening_cost_low_ratio", Type::kGauge,
                                                "lower end of the estimate's 95 % interval"};
inline constexpr Family kProcessOverheadCostHigh{"gpusonde_process_listening_cost_high_ratio", Type::kGauge,
                                                 "upper end of the estimate's 95 % interval"};
inline constexpr Family kProcessesOmitted{
    "gpusonde_processes_omitted", Type::kGauge,
    "processes that used a GPU and are summed in other, as 256 have series"};

inline constexpr Family kIncidents{"gpusonde_incidents_total", Type::kCounter,
                                   "incidents that have ended, by cause"};
inline constexpr Family kIncidentsOpen{"gpusonde_incidents_open", Type::kGauge, "incidents that last"};
inline constexpr Family kDropped{"gpusonde_dropped_total", Type::kCounter,
                                 "records lost, or with less detail than possible, by reason"};
inline constexpr Family kSamples{"gpusonde_samples_total", Type::kCounter,
                                 "stacks sampled on CPUs and at the end of waits"};

inline constexpr Family kOtlpItems{
    "gpusonde_otlp_items_total", Type::kCounter,
    "data points (of metrics) and profiles, by outcome: accepted; rejected by a receiver that took the rest "
    "of the request; dropped with a request that was refused or found too many waiting"};
inline constexpr Family kOtlpRetries{"gpusonde_otlp_retries_total", Type::kCounter,
                                     "attempts to send a request beyond its first"};
inline constexpr Family kOtlpWaiting{"gpusonde_otlp_waiting", Type::kGauge,
                                     "requests that wait to be sent or repeated"};
inline constexpr Family kOtlpLateRows{"gpusonde_otlp_late_rows_total", Type::kCounter,
                                      "rows (samples, kernels, copies, sets) that came after the profiles of "
                                      "their time were sent, without them"};

inline constexpr Family kServeHosts{"gpusonde_serve_hosts", Type::kGauge, "hosts that have data"};
inline constexpr Family kServeAgents{"gpusonde_serve_agents", Type::kGauge,
                                     "hosts whose agent has sent within the last 150 s"};
inline constexpr Family kServeHostsOmitted{"gpusonde_serve_hosts_omitted", Type::kGauge,
                                           "hosts without series, as 256 have them"};
inline constexpr Family kServeHostSeen{"gpusonde_serve_host_last_data_timestamp_seconds", Type::kGauge,
                                       "when rows last came from a host, since the Unix epoch"};
inline constexpr Family kServeSpoolAge{
    "gpusonde_serve_host_spool_age_seconds", Type::kGauge,
    "age of a host's newest sample when it came: what waited in its agent's spool; clocks apart show too"};
inline constexpr Family kServeBytes{"gpusonde_serve_host_bytes", Type::kGauge, "bytes stored of a host"};
inline constexpr Family kServeRequests{"gpusonde_serve_requests_total", Type::kCounter,
                                       "requests of agents, by outcome: accepted, refused or turned_away"};
inline constexpr Family kServeFrames{"gpusonde_serve_frames_total", Type::kCounter,
                                     "frames of rows in accepted requests"};
inline constexpr Family kServeReceived{"gpusonde_serve_received_bytes_total", Type::kCounter,
                                       "bytes of accepted requests, as sent"};
inline constexpr Family kQueries{"gpusonde_queries_total", Type::kCounter, "answers of the API, by path"};
inline constexpr Family kQuerySeconds{"gpusonde_query_seconds_total", Type::kCounter,
                                      "time that these answers took"};
inline constexpr Family kSlowQueries{"gpusonde_slow_queries_total", Type::kCounter,
                                     "answers that took more than a second"};
inline constexpr Family kConnections{"gpusonde_http_connections_total", Type::kCounter,
                                     "connections, by address: agents or pages"};
inline constexpr Family kConnectionsClosed{"gpusonde_http_connections_turned_away_total", Type::kCounter,
                                           "connections that found no room, or took that of an idle one"};
inline constexpr Family kDenied{"gpusonde_http_denied_total", Type::kCounter,
                                "requests answered with 401 or 403"};
inline constexpr Family kTlsFailures{
    "gpusonde_tls_failures_total", Type::kCounter,
    "connections without TLS, by reason: handshake, client_certificate or not_tls"};
inline constexpr Family kTlsExpiry{"gpusonde_tls_certificate_expiry_timestamp_seconds", Type::kGauge,
                                   "when the certificate in use ends, since the Unix epoch"};
inline constexpr Family kSessions{"gpusonde_sessions", Type::kGauge, "browsers that are signed in"};

inline constexpr Family kRepeated{
    "gpusonde_series_repeated", Type::kGauge,
    "series that --relabel left with the labels of another, and that are left out"};
inline constexpr Family kBuild{"gpusonde_build_info", Type::kGauge, "the version that runs; always 1"};
inline constexpr Family kOwnCpuSeconds{"process_cpu_seconds_total", Type::kCounter,
                                       "CPU time that gpusonde has used itself"};
inline constexpr Family kOwnMemory{"process_resident_memory_bytes", Type::kGauge,
                                   "memory of gpusonde itself"};
inline constexpr Family kOwnStart{"process_start_time_seconds", Type::kGauge,
                                  "when gpusonde was started, since the Unix epoch"};

// What they are of, by their labels.
struct FamilyGroup {
  std::string_view of;
  std::string_view labels;
  std::span<const Family* const> families;
};
std::span<const FamilyGroup> AllGroups();

}  // namespace gpusonde::exporters::prometheus
