// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/device.h"

#include <algorithm>
#include <cmath>

namespace simgpu {
namespace {

// Fixed cost on the device of a copy through the link.
constexpr int64_t kCopyOverheadNs = 1'000;
// Pageable memory goes through the driver's own pinned buffers, at about a third of the bandwidth.
constexpr double kPageableShare = 0.35;
// Minimum duration of a kernel.
constexpr int64_t kShortestKernelNs = 500;

}  // namespace

void Device::Create(const DeviceModel& model, int64_t now_ns) {
  model_ = model;
  faults_ = {};
  faults_.clock_limit = 1;
  schedule_.Clear(now_ns);
  to_device_ = {};
  to_host_ = {};
  inside_ = {};
  total_ = {};
  processes_ = {};
  samples_ = {};
  temperature_c_ = model.power.ambient_c + model.power.c_per_w * model.power.idle_w;
  energy_j_ = 0;
  activity_ = {};
  xid_count_ = 0;
  padding_ = 0;
  xids_ = {};
}

PowerModel Device::power_model() const {
  PowerModel power = model_.power;
  power.ambient_c += faults_.ambient_c;
  if (faults_.power_cap_w > 0) power.limit_w = faults_.power_cap_w;
  return power;
}

Throttling Device::throttling() const {
  const double share = static_cast<double>(schedule_.now().sms) / model_.sms;
  return ThrottlingAt(power_model(), temperature_c_, share, faults_.clock_limit);
}

double Device::power_w() const {
  return PowerW(model_.power, static_cast<double>(schedule_.now().sms) / model_.sms, throttling().clock);
}

Sample& Device::SampleAt(int64_t time_ns) {
  const int64_t period = time_ns / kSamplePeriodNs;
  Sample& sample = samples_[static_cast<uint64_t>(period) % kSamples];
  if (sample.period != period) {
    sample = {};
    sample.period = period;
  }
  return sample;
}

void Device::AccountFor(int64_t start_ns, int64_t end_ns, const SmSchedule::Segment& segment) {
  const PowerModel power = power_model();
  // No reading needs more, and a long idle time is one segment.
  const int64_t oldest_ns = end_ns - static_cast<int64_t>(kSamples) * kSamplePeriodNs;
  while (start_ns < end_ns) {
    const int64_t period_end_ns =
        start_ns < oldest_ns ? oldest_ns : (start_ns / kSamplePeriodNs + 1) * kSamplePeriodNs;
    const int64_t until_ns = std::min(end_ns, period_end_ns);
    const int64_t duration_ns = until_ns - start_ns;
    const double share = static_cast<double>(segment.sms) / model_.sms;
    const double clock = ThrottlingAt(power, temperature_c_, share, faults_.clock_limit).clock;
    const double power_w = PowerW(power, share, clock);
    temperature_c_ = TemperatureAfter(power, temperature_c_, power_w, duration_ns);
    energy_j_ += power_w * 1e-9 * static_cast<double>(duration_ns);
    if (start_ns >= oldest_ns) {
      Sample& sample = SampleAt(start_ns);
      sample.energy_j += power_w * 1e-9 * static_cast<double>(duration_ns);
      sample.clock_share_ns += clock * static_cast<double>(duration_ns);
      sample.copy_ns += std::max(to_device_.BusyNs(start_ns, until_ns), to_host_.BusyNs(start_ns, until_ns));
      activity_.sm_ns += share * static_cast<double>(duration_ns);
      activity_.received_bytes += static_cast<double>(to_device_.BytesMoved(start_ns, until_ns));
      activity_.sent_bytes += static_cast<double>(to_host_.BytesMoved(start_ns, until_ns));
      activity_.memory_ns += static_cast<double>(inside_.BusyNs(start_ns, until_ns));
      if (segment.sms > 0) {
        sample.busy_ns += duration_ns;
        sample.process_busy_us[(segment.owner - 1) % kProcesses] +=
            static_cast<int32_t>((duration_ns + 500) / 1000);
      }
    }
    start_ns = until_ns;
  }
}

void Device::Advance(int64_t now_ns) {
  schedule_.Retire(now_ns, [this](int64_t start_ns, int64_t end_ns, const SmSchedule::Segment& segment) {
    AccountFor(start_ns, end_ns, segment);
  });
}

std::optional<uint32_t> Device::Attach(int32_t pid, uint64_t start_ticks) {
  std::optional<uint32_t> free;
  for (uint32_t slot = 0; slot < kProcesses; ++slot) {
    const Process& process = processes_[slot];
    if (process.pid == pid && process.start_ticks == start_ticks) return slot;
    if (process.pid == 0 && !free.has_value()) free = slot;
  }
  if (free.has_value()) {
    processes_[*free] = {};
    processes_[*free].pid = pid;
    processes_[*free].start_ticks = start_ticks;
  }
  return free;
}

void Device::Detach(uint32_t slot, int64_t now_ns) {
  Advance(now_ns);
  schedule_.Cancel(slot + 1);
  processes_[slot] = {};
  for (Sample& sample : samples_) sample.process_busy_us[slot] = 0;
}

std::optional<Device::Span> Device::SubmitKernel(uint32_t slot, int64_t now_ns, int64_t ready_ns,
                                                 int64_t duration_ns, int64_t blocks, int32_t threads) {
  Advance(now_ns);
  const int64_t blocks_per_sm = std::max(1, model_.max_threads_per_sm / std::max(1, threads));
  const int64_t wanted = (std::max<int64_t>(1, blocks) + blocks_per_sm - 1) / blocks_per_sm;
  const auto sms = static_cast<int32_t>(std::min<int64_t>(wanted, model_.sms));
  const double share = static_cast<double>(sms) / model_.sms;
  const double clock = ThrottlingAt(power_model(), temperature_c_, share, faults_.clock_limit).clock;
  const int64_t stretched_ns =
      std::max<int64_t>(kShortestKernelNs, std::llround(static_cast<double>(duration_ns) / clock));
  const std::optional<int64_t> start_ns =
      schedule_.Place(EarliestNs(now_ns, ready_ns), stretched_ns, sms, model_.sms, slot + 1);
  if (!start_ns.has_value()) return std::nullopt;
  for (Account* account : {&processes_[slot].account, &total_}) {
    ++account->kernels;
    account->kernel_ns += stretched_ns;
  }
  return Span{*start_ns, *start_ns + stretched_ns};
}

int64_t Device::EarliestNs(int64_t now_ns, int64_t ready_ns) const {
  return std::max({ready_ns, now_ns + model_.launch_latency_ns, faults_.stalled_until_ns});
}

double Device::LinkBytesPerNs() const {
  double share = 1;
  if (faults_.pcie_width > 0) share *= static_cast<double>(faults_.pcie_width) / model_.pcie_width;
  // Every generation of PCIe doubles the one before.
  if (faults_.pcie_generation > 0) share *= std::exp2(faults_.pcie_generation - model_.pcie_generation);
  return model_.link_bytes_per_ns * share;
}

Device::Span Device::SubmitCopy(uint32_t slot, int64_t now_ns, int64_t ready_ns, int64_t bytes,
                                CopyDirection direction, bool pageable) {
  Advance(now_ns);
  CopyEngine& engine = direction == CopyDirection::kHostToDevice   ? to_device_
                       : direction == CopyDirection::kDeviceToHost ? to_host_
                                                                   : inside_;
  // Within the device every byte is both read and written.
  const double bytes_per_ns = direction == CopyDirection::kInside
                                  ? model_.memory_bytes_per_ns / 2
                                  : LinkBytesPerNs() * (pageable ? kPageableShare : 1);
  const CopyEngine::Span span =
      engine.Place(EarliestNs(now_ns, ready_ns), bytes, bytes_per_ns, kCopyOverheadNs);
  for (Account* account : {&processes_[slot].account, &total_}) {
    ++account->copies;
    account->copy_bytes += bytes;
    account->copy_ns += span.end_ns - span.start_ns;
  }
  return {span.start_ns, span.end_ns};
}

Device::Span Device::SubmitMemset(uint32_t slot, int64_t now_ns, int64_t ready_ns, int64_t bytes) {
  Advance(now_ns);
  const CopyEngine::Span span =
      inside_.Place(EarliestNs(now_ns, ready_ns), bytes, model_.memory_bytes_per_ns, kCopyOverheadNs);
  for (Account* account : {&processes_[slot].account, &total_}) {
    ++account->memsets;
    account->memset_ns += span.end_ns - span.start_ns;
  }
  return {span.start_ns, span.end_ns};
}

int64_t Device::used_bytes() const {
  int64_t used = model_.reserved_bytes;
  for (const Process& process : processes_) used += process.memory_bytes;
  return used;
}

bool Device::attached() const {
  return std::ranges::any_of(processes_, [](const Process& process) { return process.pid != 0; });
}

bool Device::Allocate(uint32_t slot, int64_t bytes) {
  if (bytes > model_.memory_bytes - used_bytes()) return false;
  processes_[slot].memory_bytes += bytes;
  return true;
}

void Device::Free(uint32_t slot, int64_t bytes) {
  processes_[slot].memory_bytes = std::max<int64_t>(0, processes_[slot].memory_bytes - bytes);
}

const Sample& Device::LastSample(int64_t now_ns) {
  Advance(now_ns);
  return SampleAt(now_ns - kSamplePeriodNs);
}

int64_t Device::link_bytes(CopyDirection direction, int64_t from_ns, int64_t to_ns) const {
  return (direction == CopyDirection::kHostToDevice ? to_device_ : to_host_).BytesMoved(from_ns, to_ns);
}

void Device::RaiseXid(int64_t code, int64_t now_ns) {
  xids_[xid_count_ % kXids] = {now_ns, code};
  ++xid_count_;
}

void Device::Repair(int64_t now_ns) {
  if (!schedule_.Valid(model_.sms)) schedule_.Clear(now_ns);
}

}  // namespace simgpu
