// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "simgpu/timeline/copy_engine.h"
#include "simgpu/timeline/sm_schedule.h"
#include "simgpu/timeline/thermal.h"

namespace simgpu {

// The properties of a device, fixed when the machine is created.
struct DeviceModel {
  char name[64];  // says "simulated"
  uint8_t uuid[16];
  char pci_bus_id[16];  // "0000:81:00.0"
  int32_t compute_major;
  int32_t compute_minor;
  int32_t sms;
  int32_t max_threads_per_sm;
  int32_t sm_clock_mhz;
  int32_t idle_clock_mhz;
  int32_t memory_clock_mhz;
  int32_t pcie_generation;
  int32_t pcie_width;
  int64_t memory_bytes;
  int64_t reserved_bytes;      // the driver's own
  double link_bytes_per_ns;    // one direction, whole link
  double memory_bytes_per_ns;  // read + write
  int64_t launch_latency_ns;   // from the call to the earliest start
  PowerModel power;
};

enum class CopyDirection { kHostToDevice, kDeviceToHost, kInside };

// What a device did for one process: exact, as ground truth for tests of totals.
struct Account {
  int64_t kernels;
  int64_t kernel_ns;
  int64_t copies;
  int64_t copy_ns;
  int64_t copy_bytes;
  int64_t memsets;
  int64_t memset_ns;
};

// A process that has, or had, work on the device.
struct Process {
  int32_t pid;  // 0: the slot is free
  uint32_t padding;
  uint64_t start_ticks;  // distinguishes it from a later process with the same pid
  int64_t memory_bytes;
  Account account;
};

// Injected faults.
struct Faults {
  double ambient_c;    // added to the model's
  double power_cap_w;  // 0: the model's
  double clock_limit;  // share of the full clock; 1: none
  int32_t pcie_width;  // 0: the model's
  int32_t pcie_generation;
  int64_t ecc_corrected;
  int64_t ecc_uncorrected;
  int64_t pcie_replays;
  int64_t nvlink_replays;
  int64_t nvlink_kib;  // received, and as much sent
  int64_t rows_corrected;
  int64_t rows_uncorrected;
  int32_t rows_pending;  // 0 or 1
  int32_t rows_failure;  // 0 or 1
  int32_t gpm_error;     // that NVML's samples of performance counters fail with; 0: none
  int32_t padding;
  int64_t stalled_until_ns;  // no operation starts before, as while the device's firmware doesn't answer
};

struct XidEvent {
  int64_t time_ns;
  int64_t code;
};

// One period of utilisation.
struct Sample {
  int64_t period;  // time / kSamplePeriodNs
  int64_t busy_ns;
  int64_t copy_ns;
  double energy_j;
  double clock_share_ns;                    // Σ clock × time
  std::array<int32_t, 32> process_busy_us;  // by slot
};

// What performance counters count, since the device was created.
struct Activity {
  double sm_ns;  // Σ share of SMs × time
  double received_bytes;
  double sent_bytes;
  double memory_ns;  // with copies and sets within the device, which use its whole bandwidth
};

// One simulated device: a plain value in shared memory, brought up to date on demand. Times are ns of
// CLOCK_MONOTONIC, the same in all processes, and must not decrease from call to call. Not thread-safe: the
// machine locks it.
class Device {
 public:
  static constexpr uint32_t kProcesses = 32;
  static constexpr uint32_t kSamples = 128;
  static constexpr uint32_t kXids = 64;
  // NVML's period lies between 1/6 s and 1 s, depending on the product.
  static constexpr int64_t kSamplePeriodNs = 1'000'000'000 / 6;

  struct Span {
    int64_t start_ns;
    int64_t end_ns;
  };

  void Create(const DeviceModel& model, int64_t now_ns);

  // Advances the state to now_ns. The functions below do this themselves.
  void Advance(int64_t now_ns);

  // The slot of a process, allocated if it has none; nullopt when kProcesses are alive.
  std::optional<uint32_t> Attach(int32_t pid, uint64_t start_ticks);
  // Cancels what the process has queued and frees its memory and its slot.
  void Detach(uint32_t slot, int64_t now_ns);

  // Schedules a kernel of `blocks` × `threads` that takes duration_ns at full clock. Nullopt: the queue is
  // full.
  std::optional<Span> SubmitKernel(uint32_t slot, int64_t now_ns, int64_t ready_ns, int64_t duration_ns,
                                   int64_t blocks, int32_t threads);
  Span SubmitCopy(uint32_t slot, int64_t now_ns, int64_t ready_ns, int64_t bytes, CopyDirection direction,
                  bool pageable);
  Span SubmitMemset(uint32_t slot, int64_t now_ns, int64_t ready_ns, int64_t bytes);

  // False when there isn't enough free memory.
  bool Allocate(uint32_t slot, int64_t bytes);
  void Free(uint32_t slot, int64_t bytes);

  // Readings for monitors. Utilisation is that of the last whole period before now_ns.
  const Sample& LastSample(int64_t now_ns);
  int64_t used_bytes() const;
  int64_t link_bytes(CopyDirection direction, int64_t from_ns, int64_t to_ns) const;
  Throttling throttling() const;  // now, for the work that is running
  bool busy() const { return schedule_.now().sms > 0; }
  // A data-centre device keeps its clocks up between kernels as long as a process has a context on it.
  bool attached() const;

  void RaiseXid(int64_t code, int64_t now_ns);

  // Makes the device consistent after a client died while changing it, at the price of the queued work.
  void Repair(int64_t now_ns);

  const DeviceModel& model() const { return model_; }
  const Process& process(uint32_t slot) const { return processes_[slot]; }
  // The sum over all processes ever.
  const Account& total() const { return total_; }
  const Faults& faults() const { return faults_; }
  Faults& faults() { return faults_; }
  double temperature_c() const { return temperature_c_; }
  double energy_j() const { return energy_j_; }
  // Up to the last Advance.
  const Activity& activity() const { return activity_; }
  double power_w() const;
  uint32_t xid_count() const { return xid_count_; }
  const XidEvent& xid(uint32_t index) const { return xids_[index % kXids]; }
  const Sample& sample(int64_t period) const { return samples_[static_cast<uint64_t>(period) % kSamples]; }
  std::optional<int64_t> next_end() const { return schedule_.NextEnd(); }
  const SmSchedule& schedule() const { return schedule_; }

 private:
  void AccountFor(int64_t start_ns, int64_t end_ns, const SmSchedule::Segment& segment);
  Sample& SampleAt(int64_t time_ns);
  PowerModel power_model() const;
  double LinkBytesPerNs() const;
  int64_t EarliestNs(int64_t now_ns, int64_t ready_ns) const;

  DeviceModel model_;
  Faults faults_;
  SmSchedule schedule_;
  CopyEngine to_device_;
  CopyEngine to_host_;
  CopyEngine inside_;
  Account total_;
  std::array<Process, kProcesses> processes_;
  std::array<Sample, kSamples> samples_;
  Activity activity_;
  double temperature_c_;
  double energy_j_;
  uint32_t xid_count_;
  uint32_t padding_;
  std::array<XidEvent, kXids> xids_;
};

}  // namespace simgpu
