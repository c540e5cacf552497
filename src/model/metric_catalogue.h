// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusonde::model {

// Every metric whose values are rows of the table `metrics`, or of `signals` if it is a MetricKind::kSum.
enum class Metric : uint8_t {
  kCgroupCpuQuota,
  kCgroupIoThrottled,
  kCgroupThrottled,
  kDiskBytes,
  kGpuClockMemory,
  kGpuClockSm,
  kGpuDramActive,
  kGpuEccCorrected,
  kGpuEccUncorrected,
  kGpuEnergy,
  kGpuMemoryUsed,
  kGpuMemoryUtilization,
  kGpuNvlinkCrcData,
  kGpuNvlinkCrcFlit,
  kGpuNvlinkReceived,
  kGpuNvlinkRecoveries,
  kGpuNvlinkReplays,
  kGpuNvlinkRx,
  kGpuNvlinkSent,
  kGpuNvlinkTx,
  kGpuPcieGeneration,
  kGpuPcieReplays,
  kGpuPcieRx,
  kGpuPcieRxMean,
  kGpuPcieTx,
  kGpuPcieTxMean,
  kGpuPcieWidth,
  kGpuPower,
  kGpuPowerLimit,
  kGpuProcessMemoryUsed,
  kGpuProcessUtilization,
  kGpuRowsCorrected,
  kGpuRowsFailure,
  kGpuRowsPending,
  kGpuRowsUncorrected,
  kGpuSmActive,
  kGpuSmOccupancy,
  kGpuTemperature,
  kGpuTemperatureSlowdown,
  kGpuTensorActive,
  kGpuTensorDfma,
  kGpuTensorHmma,
  kGpuTensorImma,
  kGpuThrottleReasons,
  kGpuUtilization,
  kGpuXid,
  kHostPressureCpu,
  kHostPressureIo,
  kHostPressureMemory,
  kHostSteal,
  kOverheadBudget,
  kOverheadCost,
  kOverheadCostHigh,
  kOverheadCostLow,
  kOverheadSpent,
  kNetworkBytes,
  kNetworkQueued,
  kNetworkRetransmits,
  kProcessBlocked,
  kProcessCpus,
  kProcessNice,
  kProcessStopped,
  kStepBlocked,
  kStepBlockedIo,
  kStepCpu,
  kStepGpuCopy,
  kStepGpuQueue,
  kStepGpuRun,
  kStepInterrupted,
  kStepIoThrottled,
  kStepLoader,
  kStepNetwork,
  kStepNetworkQueue,
  kStepPeer,
  kStepReclaim,
  kStepRunQueue,
  kStepRunQueueOwn,
  kStepSleeping,
  kStepStopped,
  kStepThrottled,
  kStepUnexplained,
  kStepWaiting,
  kThreadBlocked,
  kThreadBlockedIo,
  kThreadDisplaced,
  kThreadInterrupted,
  kThreadNetwork,
  kThreadReclaim,
  kThreadRunQueue,
  kThreadRunning,
  kThreadSleeping,
  kThreadStopped,
  kThreadWaiting,
};

enum class MetricKind : uint8_t {
  kGauge,    // a state at the time of the row
  kCounter,  // counts up; starts again from 0 with the driver, unless its meaning says otherwise
  kFlags,    // a bit mask: a state at the time of the row
  kEvent,    // a row for each thing that happened, at its time
  kSum,      // an amount per bucket of time: the table `signals`
  kStep,     // mean time per step: the table `evidence`
};

constexpr std::string_view NameOf(MetricKind kind) {
  constexpr std::string_view kNames[] = {"gauge", "counter", "flags", "event", "sum", "step"};
  return kNames[static_cast<size_t>(kind)];
}

struct MetricInfo {
  Metric metric;
  std::string_view name;   // as stored and exported
  std::string_view label;  // as shown in the UI
  std::string_view unit;   // "" where there is none
  MetricKind kind;
  std::string_view source;   // what measures it
  std::string_view meaning;  // a phrase without a final stop
};

// Sorted by name. A new metric is a line here; docs/metrics.md is generated from it.
inline constexpr std::array kMetricCatalogue = {
    MetricInfo{Metric::kCgroupCpuQuota, "cgroup.cpu_quota", "CPU quota", "ns", MetricKind::kSum, "cgroup",
               "CPU time that the lowest CPU quota of a process's cgroup and its ancestors allows; absent "
               "without a quota"},
    MetricInfo{Metric::kCgroupIoThrottled, "cgroup.io_throttled", "Disk limit", "ns", MetricKind::kSum,
               "cgroup",
               "minimum time that the I/O of a process's cgroup, or of an ancestor, takes at its I/O limit"},
    MetricInfo{
        Metric::kCgroupThrottled, "cgroup.throttled", "Throttled", "ns", MetricKind::kSum, "cgroup",
        "time in which a process's cgroup, or an ancestor, was throttled by its CPU quota, over all CPUs"},
    MetricInfo{Metric::kDiskBytes, "disk.bytes", "Disk", "bytes", MetricKind::kSum, "eBPF",
               "bytes that a process requested from block devices, reads and writes"},
    MetricInfo{Metric::kGpuClockMemory, "gpu.clock.memory", "Memory clock", "MHz", MetricKind::kGauge, "NVML",
               "clock of the device's memory"},
    MetricInfo{Metric::kGpuClockSm, "gpu.clock.sm", "SM clock", "MHz", MetricKind::kGauge, "NVML",
               "clock of the streaming multiprocessors"},
    MetricInfo{Metric::kGpuDramActive, "gpu.dram.active", "Memory bandwidth", "%", MetricKind::kGauge, "GPM",
               "bytes read from and written to device memory, as a share of its greatest bandwidth"},
    MetricInfo{Metric::kGpuEccCorrected, "gpu.ecc.corrected", "ECC errors corrected", "errors",
               MetricKind::kCounter, "NVML", "memory errors corrected since the driver was loaded"},
    MetricInfo{Metric::kGpuEccUncorrected, "gpu.ecc.uncorrected", "ECC errors not corrected", "errors",
               MetricKind::kCounter, "NVML",
               "memory errors that could not be corrected since the driver was loaded"},
    MetricInfo{Metric::kGpuEnergy, "gpu.energy", "Energy", "J", MetricKind::kCounter, "NVML",
               "energy used since the driver was loaded"},
    MetricInfo{Metric::kGpuMemoryUsed, "gpu.memory.used", "Memory used", "bytes", MetricKind::kGauge, "NVML",
               "device memory in use, by programs and by the driver as far as it counts its own"},
    MetricInfo{Metric::kGpuMemoryUtilization, "gpu.memory.utilization", "Memory active", "%",
               MetricKind::kGauge, "NVML",
               "share of the driver's last sample period (1/6 s to 1 s) in which device memory was read or "
               "written"},
    MetricInfo{Metric::kGpuNvlinkCrcData, "gpu.nvlink.crc.data", "NVLink data errors", "errors",
               MetricKind::kCounter, "NVML", "checksum errors in the data of all NVLinks"},
    MetricInfo{Metric::kGpuNvlinkCrcFlit, "gpu.nvlink.crc.flit", "NVLink flow errors", "errors",
               MetricKind::kCounter, "NVML", "checksum errors in the flow control of all NVLinks"},
    MetricInfo{Metric::kGpuNvlinkReceived, "gpu.nvlink.received", "NVLink received in all", "bytes",
               MetricKind::kCounter, "NVML", "data received over all NVLinks, without headers"},
    MetricInfo{Metric::kGpuNvlinkRecoveries, "gpu.nvlink.recoveries", "NVLink recoveries", "errors",
               MetricKind::kCounter, "NVML", "times that an NVLink had to be trained again"},
    MetricInfo{Metric::kGpuNvlinkReplays, "gpu.nvlink.replays", "NVLink replays", "errors",
               MetricKind::kCounter, "NVML", "times that data had to be sent over an NVLink again"},
    MetricInfo{Metric::kGpuNvlinkRx, "gpu.nvlink.rx", "NVLink received", "bytes/s", MetricKind::kGauge, "GPM",
               "mean data rate received over all NVLinks"},
    MetricInfo{Metric::kGpuNvlinkSent, "gpu.nvlink.sent", "NVLink sent in all", "bytes", MetricKind::kCounter,
               "NVML", "data sent over all NVLinks, without headers"},
    MetricInfo{Metric::kGpuNvlinkTx, "gpu.nvlink.tx", "NVLink sent", "bytes/s", MetricKind::kGauge, "GPM",
               "mean data rate sent over all NVLinks"},
    MetricInfo{Metric::kGpuPcieGeneration, "gpu.pcie.generation", "PCIe generation", "", MetricKind::kGauge,
               "NVML", "current generation of the link; lower when the device is idle"},
    MetricInfo{Metric::kGpuPcieReplays, "gpu.pcie.replays", "PCIe replays", "packets", MetricKind::kCounter,
               "NVML", "packets that had to be sent over the link again"},
    MetricInfo{Metric::kGpuPcieRx, "gpu.pcie.rx", "PCIe received", "bytes/s", MetricKind::kGauge, "NVML",
               "data rate received over the link, over 20 ms"},
    MetricInfo{Metric::kGpuPcieRxMean, "gpu.pcie.rx.mean", "PCIe received (mean)", "bytes/s",
               MetricKind::kGauge, "GPM", "mean data rate received over the link"},
    MetricInfo{Metric::kGpuPcieTx, "gpu.pcie.tx", "PCIe sent", "bytes/s", MetricKind::kGauge, "NVML",
               "data rate sent over the link, over 20 ms"},
    MetricInfo{Metric::kGpuPcieTxMean, "gpu.pcie.tx.mean", "PCIe sent (mean)", "bytes/s", MetricKind::kGauge,
               "GPM", "mean data rate sent over the link"},
    MetricInfo{Metric::kGpuPcieWidth, "gpu.pcie.width", "PCIe lanes", "lanes", MetricKind::kGauge, "NVML",
               "lanes of the link in use"},
    MetricInfo{Metric::kGpuPower, "gpu.power", "Power", "W", MetricKind::kGauge, "NVML",
               "power that the whole board draws; a mean over a second on most products"},
    MetricInfo{Metric::kGpuPowerLimit, "gpu.power.limit", "Power limit", "W", MetricKind::kGauge, "NVML",
               "power at which the driver lowers the clocks"},
    MetricInfo{Metric::kGpuProcessMemoryUsed, "gpu.process.memory.used", "Memory used", "bytes",
               MetricKind::kGauge, "NVML", "device memory in use by one process"},
    MetricInfo{Metric::kGpuProcessUtilization, "gpu.process.utilization", "Utilization", "%",
               MetricKind::kGauge, "NVML",
               "share of the driver's sample periods since the last row in which a kernel of one process was "
               "running; no row where it had none"},
    MetricInfo{Metric::kGpuRowsCorrected, "gpu.rows.corrected", "Rows remapped (corrected)", "rows",
               MetricKind::kCounter, "NVML",
               "rows of device memory that were replaced after corrected errors, over the device's lifetime"},
    MetricInfo{Metric::kGpuRowsFailure, "gpu.rows.failure", "Row remapping failed", "", MetricKind::kGauge,
               "NVML", "1: a row of device memory could not be replaced, so the device should be"},
    MetricInfo{Metric::kGpuRowsPending, "gpu.rows.pending", "Row remapping pending", "", MetricKind::kGauge,
               "NVML", "1: a row of device memory will be replaced when the device is reset"},
    MetricInfo{Metric::kGpuRowsUncorrected, "gpu.rows.uncorrected", "Rows remapped (not corrected)", "rows",
               MetricKind::kCounter, "NVML",
               "rows of device memory that were replaced after errors that could not be corrected, over the "
               "device's lifetime"},
    MetricInfo{Metric::kGpuSmActive, "gpu.sm.active", "SM activity", "%", MetricKind::kGauge, "GPM",
               "share of SMs with at least one warp, mean over time: what `gpu.utilization` doesn't say, "
               "which is 100 % with one busy SM"},
    MetricInfo{Metric::kGpuSmOccupancy, "gpu.sm.occupancy", "SM occupancy", "%", MetricKind::kGauge, "GPM",
               "warps on the SMs, as a share of the most that they can hold"},
    MetricInfo{Metric::kGpuTemperature, "gpu.temperature", "Temperature", "°C", MetricKind::kGauge, "NVML",
               "temperature of the chip"},
    MetricInfo{Metric::kGpuTemperatureSlowdown, "gpu.temperature.slowdown", "Slowdown temperature", "°C",
               MetricKind::kGauge, "NVML", "temperature at which the device slows down"},
    MetricInfo{Metric::kGpuTensorActive, "gpu.tensor.active", "Tensor pipe", "%", MetricKind::kGauge, "GPM",
               "share of the time in which the SMs' tensor cores worked"},
    MetricInfo{Metric::kGpuTensorDfma, "gpu.tensor.dfma", "Tensor pipe, FP64", "%", MetricKind::kGauge, "GPM",
               "the same for 64-bit floating point (DFMA)"},
    MetricInfo{Metric::kGpuTensorHmma, "gpu.tensor.hmma", "Tensor pipe, FP16", "%", MetricKind::kGauge, "GPM",
               "the same for floating point of fewer bits (HMMA)"},
    MetricInfo{Metric::kGpuTensorImma, "gpu.tensor.imma", "Tensor pipe, integer", "%", MetricKind::kGauge,
               "GPM", "the same for integers (IMMA)"},
    MetricInfo{Metric::kGpuThrottleReasons, "gpu.throttle.reasons", "Throttling", "", MetricKind::kFlags,
               "NVML", "why the clocks are not higher: a sum of the bits below"},
    MetricInfo{Metric::kGpuUtilization, "gpu.utilization", "Utilization", "%", MetricKind::kGauge, "NVML",
               "share of the driver's last sample period (1/6 s to 1 s) in which at least one kernel was "
               "running"},
    MetricInfo{Metric::kGpuXid, "gpu.xid", "XID", "", MetricKind::kEvent, "NVML",
               "an error that the driver reported; the value is its code"},
    MetricInfo{Metric::kHostPressureCpu, "host.pressure.cpu", "CPU pressure", "ns", MetricKind::kSum, "PSI",
               "time in which at least one task on the machine waited for a CPU (PSI, some)"},
    MetricInfo{Metric::kHostPressureIo, "host.pressure.io", "I/O pressure", "ns", MetricKind::kSum, "PSI",
               "time in which at least one task on the machine waited for I/O (PSI, some)"},
    MetricInfo{Metric::kHostPressureMemory, "host.pressure.memory", "Memory pressure", "ns", MetricKind::kSum,
               "PSI", "time in which at least one task on the machine waited for memory (PSI, some)"},
    MetricInfo{Metric::kHostSteal, "host.steal", "Steal", "ns", MetricKind::kSum, "/proc/stat",
               "time in which the hypervisor ran other guests while a CPU had work, over all CPUs"},
    MetricInfo{Metric::kOverheadBudget, "listening.budget", "Overhead budget", "%", MetricKind::kGauge,
               "inject library", "by how much GPU profiling may slow a process down (`--overhead`)"},
    MetricInfo{Metric::kOverheadCost, "listening.cost", "Profiling overhead", "%", MetricKind::kGauge,
               "inject library",
               "by how much longer a process's steps take while GPU profiling is active, estimated "
               "from steps with and without; no row until that is known"},
    MetricInfo{Metric::kOverheadCostHigh, "listening.cost.high", "Profiling overhead, at most", "%",
               MetricKind::kGauge, "inject library", "upper end of its 95 % interval"},
    MetricInfo{Metric::kOverheadCostLow, "listening.cost.low", "Profiling overhead, at least", "%",
               MetricKind::kGauge, "inject library",
               "lower end of its 95 % interval; below 0 where it may cost nothing"},
    MetricInfo{
        Metric::kOverheadSpent, "listening.spent", "Overhead budget spent", "%", MetricKind::kGauge,
        "inject library",
        "by how much GPU profiling slowed a process down lately, its pauses included: what is spent of "
        "`listening.budget`"},
    MetricInfo{Metric::kNetworkBytes, "network.bytes", "Network", "bytes", MetricKind::kSum, "eBPF",
               "bytes of a process's packets that had to queue for a network device; measured while a "
               "profiled program waits for the network"},
    MetricInfo{
        Metric::kNetworkQueued, "network.queued", "Network queue", "ns", MetricKind::kSum, "eBPF",
        "time in which TCP packets of a profiled process were queued for a network device; measured while a "
        "profiled program waits for the network"},
    MetricInfo{Metric::kNetworkRetransmits, "network.retransmits", "Retransmits", "segments",
               MetricKind::kSum, "eBPF",
               "TCP segments that a process retransmitted; measured while a profiled program waits for the "
               "network"},
    MetricInfo{Metric::kProcessBlocked, "process.blocked", "Blocked", "ns", MetricKind::kSum,
               "/proc/PID/stat",
               "time in which a thread of a process, that does nothing else, is blocked in the kernel, "
               "uninterruptibly; sampled once a second, after two seconds"},
    MetricInfo{Metric::kProcessCpus, "process.cpus", "CPUs allowed", "ns", MetricKind::kSum, "affinity",
               "CPU time open to a process: the CPUs on which any of its threads may run, times the time"},
    MetricInfo{Metric::kProcessNice, "process.nice", "Nice value", "ns", MetricKind::kSum, "/proc/PID/stat",
               "nice value of a process's first thread, 20 for SCHED_IDLE and 0 for those below 0, times the "
               "time"},
    MetricInfo{Metric::kProcessStopped, "process.stopped", "Stopped", "ns", MetricKind::kSum,
               "/proc/PID/stat",
               "time in which a process was stopped by a signal or by a tracer, sampled once a round; of "
               "processes without GPU work after two seconds"},
    MetricInfo{Metric::kStepBlocked, "step.blocked", "Blocked", "ns", MetricKind::kStep, "diagnosis",
               "time per step: blocked in the kernel, for neither a device nor memory"},
    MetricInfo{Metric::kStepBlockedIo, "step.blocked_io", "Disk", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for a device"},
    MetricInfo{Metric::kStepCpu, "step.cpu", "CPU", "ns", MetricKind::kStep, "diagnosis",
               "time per step: running on a CPU"},
    MetricInfo{Metric::kStepGpuCopy, "step.gpu_copy", "GPU copies", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for the GPU while it copied and ran no kernel"},
    MetricInfo{Metric::kStepGpuQueue, "step.gpu_queue", "GPU queue", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for the GPU while it did nothing for this program"},
    MetricInfo{Metric::kStepGpuRun, "step.gpu_run", "GPU kernels", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for the GPU while it ran kernels"},
    MetricInfo{Metric::kStepInterrupted, "step.interrupted", "Interrupts", "ns", MetricKind::kStep,
               "diagnosis", "time per step: taken by interrupts and softirqs"},
    MetricInfo{Metric::kStepIoThrottled, "step.io_throttled", "Disk limit", "ns", MetricKind::kStep,
               "diagnosis", "time per step: waiting for a device because of the cgroup's I/O limit"},
    MetricInfo{Metric::kStepLoader, "step.loader", "Own processes", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for another thread or process of the program, which was running"},
    MetricInfo{Metric::kStepNetwork, "step.network", "Network", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for a packet from another machine, or of unknown origin"},
    MetricInfo{
        Metric::kStepNetworkQueue, "step.network_queue", "Network queue", "ns", MetricKind::kStep,
        "diagnosis",
        "time per step: waiting for a packet while packets of the job were queued for a network device"},
    MetricInfo{Metric::kStepPeer, "step.peer", "Other ranks", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for another rank of the job, by what that rank did itself"},
    MetricInfo{Metric::kStepReclaim, "step.reclaim", "Reclaim", "ns", MetricKind::kStep, "diagnosis",
               "time per step: reclaiming memory"},
    MetricInfo{Metric::kStepRunQueue, "step.run_queue", "CPU taken by others", "ns", MetricKind::kStep,
               "diagnosis", "time per step: waiting for a CPU that other programs used"},
    MetricInfo{Metric::kStepRunQueueOwn, "step.run_queue_own", "CPU taken by itself", "ns", MetricKind::kStep,
               "diagnosis", "time per step: waiting for a CPU that other threads of the program used"},
    MetricInfo{Metric::kStepSleeping, "step.sleeping", "Sleeping", "ns", MetricKind::kStep, "diagnosis",
               "time per step: sleeping (nanosleep)"},
    MetricInfo{Metric::kStepStopped, "step.stopped", "Stopped", "ns", MetricKind::kStep, "diagnosis",
               "time per step: stopped by a signal, a tracer or a frozen cgroup"},
    MetricInfo{Metric::kStepThrottled, "step.throttled", "Throttled", "ns", MetricKind::kStep, "diagnosis",
               "time per step: throttled by the cgroup's CPU quota"},
    MetricInfo{Metric::kStepUnexplained, "step.unexplained", "Unexplained", "ns", MetricKind::kStep,
               "diagnosis", "time per step: not covered by any signal"},
    MetricInfo{Metric::kStepWaiting, "step.waiting", "Waiting", "ns", MetricKind::kStep, "diagnosis",
               "time per step: waiting for an unknown process"},
    MetricInfo{Metric::kThreadBlocked, "thread.blocked", "Blocked", "ns", MetricKind::kSum, "eBPF",
               "time in which a thread was in uninterruptible sleep, other than for I/O"},
    MetricInfo{Metric::kThreadBlockedIo, "thread.blocked_io", "Blocked for I/O", "ns", MetricKind::kSum,
               "eBPF", "time in which a thread waited for I/O, as the kernel counts it (iowait)"},
    MetricInfo{Metric::kThreadDisplaced, "thread.displaced", "Displaced", "ns", MetricKind::kSum, "eBPF",
               "part of `thread.run_queue` behind profiled processes while an unprofiled one, `other`, ran "
               "on another "
               "CPU where the thread might have run; estimated from one such CPU at the end of each delay"},
    MetricInfo{Metric::kThreadInterrupted, "thread.interrupted", "Interrupted", "ns", MetricKind::kSum,
               "eBPF", "time that interrupts and softirqs took while the thread was on the CPU"},
    MetricInfo{
        Metric::kThreadNetwork, "thread.network", "Network", "ns", MetricKind::kSum, "eBPF",
        "time of a thread's waits that a packet from the network ended; `other` is the sender if it is a "
        "profiled process of this machine"},
    MetricInfo{Metric::kThreadReclaim, "thread.reclaim", "Reclaim", "ns", MetricKind::kSum, "eBPF",
               "time in which a thread reclaimed memory for its own allocation (direct reclaim)"},
    MetricInfo{
        Metric::kThreadRunQueue, "thread.run_queue", "Run queue", "ns", MetricKind::kSum, "eBPF",
        "run-queue delay: time in which a thread was runnable without a CPU; `other` is who ran instead"},
    MetricInfo{Metric::kThreadRunning, "thread.running", "Running", "ns", MetricKind::kSum, "eBPF",
               "time in which a thread was on a CPU, interrupts included"},
    MetricInfo{Metric::kThreadSleeping, "thread.sleeping", "Sleeping", "ns", MetricKind::kSum, "eBPF",
               "time in which a thread slept (nanosleep)"},
    MetricInfo{Metric::kThreadStopped, "thread.stopped", "Stopped", "ns", MetricKind::kSum, "eBPF",
               "time in which a thread was stopped by a signal, a tracer or a frozen cgroup; `other` is the "
               "process that let it continue"},
    MetricInfo{
        Metric::kThreadWaiting, "thread.waiting", "Waiting", "ns", MetricKind::kSum, "eBPF",
        "time in which a thread waited until it was woken; `other` is the process that woke it, if it is "
        "profiled or the wait took a millisecond"},
};

// The metric with this name; empty for a name that this version doesn't know.
std::optional<Metric> FindMetric(std::string_view name);

// What people read for that name; the name itself where this version doesn't know it.
std::string_view LabelOf(std::string_view name);

constexpr const MetricInfo& InfoOf(Metric metric) { return kMetricCatalogue[static_cast<size_t>(metric)]; }

// Why a device's clocks are what they are: the bits of Metric::kGpuThrottleReasons, which are NVML's
// (nvmlClocksEventReasons).
struct ThrottleReason {
  uint64_t bit;
  bool slows;  // the device would run faster without it; else it is intended or the device is idle
  std::string_view label;
  std::string_view meaning;  // a phrase without a final stop
};

inline constexpr uint64_t kThrottleIdle = 0x1;
inline constexpr uint64_t kThrottlePowerCap = 0x4;

inline constexpr std::array kThrottleReasons = {
    ThrottleReason{kThrottleIdle, false, "idle", "nothing is running"},
    ThrottleReason{0x2, false, "application clocks", "lower clocks were set for applications"},
    ThrottleReason{kThrottlePowerCap, true, "power cap", "the board has reached its power limit"},
    ThrottleReason{0x8, true, "hardware slowdown", "heat, an external power brake or a weak power supply"},
    ThrottleReason{0x10, false, "sync boost", "the device follows the slowest one of its group"},
    ThrottleReason{0x20, true, "software thermal slowdown",
                   "the chip or its memory is above the driver's temperature limit"},
    ThrottleReason{0x40, true, "hardware thermal slowdown", "the chip is too hot; clocks are halved or less"},
    ThrottleReason{0x80, true, "hardware power brake", "the system's power supply requests less power draw"},
    ThrottleReason{0x100, false, "display clocks", "a display determines the clocks"},
};

// The bits that slow a device down.
consteval uint64_t SlowingThrottleBits() {
  uint64_t bits = 0;
  for (const ThrottleReason& reason : kThrottleReasons)
    if (reason.slows) bits |= reason.bit;
  return bits;
}
inline constexpr uint64_t kSlowingThrottleBits = SlowingThrottleBits();

// Those of the bits that slow a device down as text: "power cap, hardware slowdown", or with their meanings
// "power cap (the board has reached its power limit); hardware slowdown (…)". Empty for none.
std::string SlowingReasons(uint64_t bits, bool with_meanings = false);

// NVIDIA's meaning of an XID code (docs.nvidia.com/deploy/xid-errors); empty for codes not in our list of
// common ones.
std::string_view XidMeaning(int64_t code);

}  // namespace gpusonde::model
