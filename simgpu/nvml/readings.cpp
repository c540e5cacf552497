// SPDX-License-Identifier: Apache-2.0
// Current readings: utilisation, memory, clocks, power, temperature, PCIe, ECC.
#include <algorithm>
#include <cmath>

#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

uint32_t Percent(double share) {
  return static_cast<uint32_t>(std::lround(100 * std::clamp(share, 0.0, 1.0)));
}

uint32_t Percent(int64_t part_ns) {
  return Percent(static_cast<double>(part_ns) / static_cast<double>(Device::kSamplePeriodNs));
}

uint64_t TimeUs(int64_t period) {
  return static_cast<uint64_t>((period + 1) * Device::kSamplePeriodNs / 1000);
}

uint64_t ThrottleReasons(const Device& device) {
  if (!device.busy()) return GPUSONDE_NVML_THROTTLE_GPU_IDLE;
  const Throttling throttling = device.throttling();
  return (throttling.by_power ? GPUSONDE_NVML_THROTTLE_SW_POWER_CAP : 0) |
         (throttling.by_heat ? GPUSONDE_NVML_THROTTLE_SW_THERMAL : 0) |
         (device.faults().clock_limit < 1 ? GPUSONDE_NVML_THROTTLE_HW_SLOWDOWN : 0);
}

// Of a MIG instance its part of the device. Programs run on the first one.
uint64_t TotalMemory(const Device& device, const std::optional<Instance>& instance) {
  const auto total = static_cast<uint64_t>(device.model().memory_bytes);
  return instance.has_value() ? total / kInstances : total;
}
uint64_t UsedMemory(const Device& device, const std::optional<Instance>& instance) {
  if (instance.has_value() && instance->index > 0) return 0;
  return std::min(static_cast<uint64_t>(device.used_bytes()), TotalMemory(device, instance));
}

uint32_t ClockMhz(const Device& device, uint32_t which) {
  const DeviceModel& model = device.model();
  if (which == GPUSONDE_NVML_CLOCK_MEM) return static_cast<uint32_t>(model.memory_clock_mhz);
  if (!device.attached()) return static_cast<uint32_t>(model.idle_clock_mhz);
  return static_cast<uint32_t>(std::lround(model.sm_clock_mhz * device.throttling().clock));
}

// Calls add(sample) for every whole period that ended after last_seen_us, oldest first.
template <class Add>
void NewSamples(const Device& device, int64_t now_ns, uint64_t last_seen_us, Add add) {
  const int64_t current = now_ns / Device::kSamplePeriodNs;
  for (int64_t period = std::max<int64_t>(0, current - Device::kSamples + 1); period < current; ++period) {
    const Sample& sample = device.sample(period);
    if (sample.period == period && TimeUs(period) > last_seen_us) add(sample);
  }
}

}  // namespace
}  // namespace simgpu::nvml

using namespace simgpu;        // NOLINT(google-build-using-namespace): the API's functions are global
using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): likewise

SIMGPU_EXPORT Result nvmlDeviceGetUtilizationRates(void* handle, gpusonde_nvml_utilization* utilization) {
  return With(handle, utilization, [&](Device& device) -> Result {
    if (HasMig(device)) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    const Sample& sample = device.LastSample(NowNs());
    *utilization = {Percent(sample.busy_ns), Percent(sample.copy_ns)};
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMemoryInfo(void* handle, gpusonde_nvml_memory* memory) {
  const std::optional<Instance> instance = InstanceOf(handle);
  return With(instance.has_value() ? HandleOf(instance->ordinal) : handle, memory, [&](Device& device) {
    ForgetTheDead(device, NowNs());
    memory->total = TotalMemory(device, instance);
    memory->used = UsedMemory(device, instance);
    memory->free = memory->total - memory->used;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMemoryInfo_v2(void* handle, gpusonde_nvml_memory_v2* memory) {
  const std::optional<Instance> instance = InstanceOf(handle);
  return With(instance.has_value() ? HandleOf(instance->ordinal) : handle, memory, [&](Device& device) {
    ForgetTheDead(device, NowNs());
    memory->total = TotalMemory(device, instance);
    memory->reserved = static_cast<uint64_t>(device.model().reserved_bytes);
    memory->used = UsedMemory(device, instance);
    memory->free = memory->total - memory->used;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetClockInfo(void* handle, uint32_t which, uint32_t* mhz) {
  return With(handle, mhz, [&](Device& device) {
    ForgetTheDead(device, NowNs());
    *mhz = ClockMhz(device, which);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMaxClockInfo(void* handle, uint32_t which, uint32_t* mhz) {
  return With(handle, mhz, [&](Device& device) {
    const DeviceModel& model = device.model();
    *mhz =
        static_cast<uint32_t>(which == GPUSONDE_NVML_CLOCK_MEM ? model.memory_clock_mhz : model.sm_clock_mhz);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, uint64_t* reasons) {
  return With(handle, reasons, [&](Device& device) {
    *reasons = ThrottleReasons(device);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetCurrentClocksEventReasons(void* handle, uint64_t* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(handle, reasons);
}

SIMGPU_EXPORT Result nvmlDeviceGetPowerUsage(void* handle, uint32_t* milliwatts) {
  return With(handle, milliwatts, [&](Device& device) {
    const Sample& sample = device.LastSample(NowNs());
    *milliwatts = static_cast<uint32_t>(
        std::lround(sample.energy_j * 1e12 / static_cast<double>(Device::kSamplePeriodNs)));
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetEnforcedPowerLimit(void* handle, uint32_t* milliwatts) {
  return With(handle, milliwatts, [&](Device& device) {
    const double cap_w = device.faults().power_cap_w;
    *milliwatts =
        static_cast<uint32_t>(std::lround(1000 * (cap_w > 0 ? cap_w : device.model().power.limit_w)));
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetTotalEnergyConsumption(void* handle, uint64_t* millijoules) {
  return With(handle, millijoules, [&](Device& device) {
    *millijoules = static_cast<uint64_t>(1000 * device.energy_j());
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetTemperature(void* handle, uint32_t /*sensor*/, uint32_t* celsius) {
  return With(handle, celsius, [&](Device& device) {
    *celsius = static_cast<uint32_t>(std::lround(std::max(0.0, device.temperature_c())));
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetTemperatureThreshold(void* handle, uint32_t which, uint32_t* celsius) {
  return With(handle, celsius, [&](Device& device) -> Result {
    if (which > GPUSONDE_NVML_THRESHOLD_SLOWDOWN) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    const double slowdown_c = device.model().power.slowdown_c;
    // Devices shut down a few degrees above the slowdown temperature.
    *celsius = static_cast<uint32_t>(
        std::lround(which == GPUSONDE_NVML_THRESHOLD_SLOWDOWN ? slowdown_c : slowdown_c + 5));
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetPcieThroughput(void* handle, uint32_t which, uint32_t* kilobytes_per_s) {
  return With(handle, kilobytes_per_s, [&](Device& device) {
    const int64_t now_ns = NowNs();
    const CopyDirection direction =
        which == GPUSONDE_NVML_PCIE_TX_BYTES ? CopyDirection::kDeviceToHost : CopyDirection::kHostToDevice;
    const int64_t bytes = device.link_bytes(direction, now_ns - CopyEngine::kWindowNs, now_ns);
    *kilobytes_per_s = static_cast<uint32_t>(bytes * (1'000'000'000 / CopyEngine::kWindowNs) / 1000);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetCurrPcieLinkGeneration(void* handle, uint32_t* generation) {
  return With(handle, generation, [&](Device& device) {
    const int32_t fault = device.faults().pcie_generation;
    *generation = static_cast<uint32_t>(fault > 0 ? fault : device.model().pcie_generation);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetCurrPcieLinkWidth(void* handle, uint32_t* lanes) {
  return With(handle, lanes, [&](Device& device) {
    const int32_t fault = device.faults().pcie_width;
    *lanes = static_cast<uint32_t>(fault > 0 ? fault : device.model().pcie_width);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMaxPcieLinkGeneration(void* handle, uint32_t* generation) {
  return With(handle, generation, [&](Device& device) {
    *generation = static_cast<uint32_t>(device.model().pcie_generation);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMaxPcieLinkWidth(void* handle, uint32_t* lanes) {
  return With(handle, lanes, [&](Device& device) {
    *lanes = static_cast<uint32_t>(device.model().pcie_width);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetPcieReplayCounter(void* handle, uint32_t* replays) {
  return With(handle, replays, [&](Device& device) {
    *replays = static_cast<uint32_t>(device.faults().pcie_replays);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetTotalEccErrors(void* handle, uint32_t error_type, uint32_t /*counter_type*/,
                                                 uint64_t* count) {
  return With(handle, count, [&](Device& device) {
    *count =
        static_cast<uint64_t>(error_type == GPUSONDE_NVML_ERRORS_CORRECTED ? device.faults().ecc_corrected
                                                                           : device.faults().ecc_uncorrected);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetRemappedRows(void* handle, uint32_t* corrected, uint32_t* uncorrected,
                                               uint32_t* pending, uint32_t* failure) {
  return With(handle, corrected, [&](Device& device) -> Result {
    if (uncorrected == nullptr || pending == nullptr || failure == nullptr)
      return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
    constexpr int32_t kAmpere = 8;
    if (device.model().compute_major < kAmpere) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    const Faults& faults = device.faults();
    *corrected = static_cast<uint32_t>(faults.rows_corrected);
    *uncorrected = static_cast<uint32_t>(faults.rows_uncorrected);
    *pending = faults.rows_pending > 0 ? 1 : 0;
    *failure = faults.rows_failure > 0 ? 1 : 0;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetEccMode(void* handle, uint32_t* current, uint32_t* pending) {
  return With(handle, current, [&](Device&) {
    *current = 1;
    if (pending != nullptr) *pending = 1;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetComputeRunningProcesses_v3(void* handle, uint32_t* count,
                                                             gpusonde_nvml_process* processes) {
  return With(handle, count, [&](Device& device) -> Result {
    ForgetTheDead(device, NowNs());
    uint32_t found = 0;
    for (uint32_t slot = 0; slot < Device::kProcesses; ++slot) {
      const Process& process = device.process(slot);
      if (process.pid == 0) continue;
      if (processes != nullptr && found < *count)
        processes[found] = {static_cast<uint32_t>(process.pid), static_cast<uint64_t>(process.memory_bytes),
                            UINT32_MAX, UINT32_MAX};
      ++found;
    }
    const bool fits = found <= *count;
    *count = found;
    return fits ? GPUSONDE_NVML_SUCCESS : GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetProcessUtilization(void* handle, gpusonde_nvml_process_sample* samples,
                                                     uint32_t* count, uint64_t last_seen_us) {
  return With(handle, count, [&](Device& device) -> Result {
    const int64_t now_ns = NowNs();
    ForgetTheDead(device, now_ns);
    // One sample per process: the newest in which it was active.
    uint32_t found = 0;
    for (uint32_t slot = 0; slot < Device::kProcesses; ++slot) {
      const Sample* newest = nullptr;
      NewSamples(device, now_ns, last_seen_us, [&](const Sample& sample) {
        if (sample.process_busy_us[slot] > 0) newest = &sample;
      });
      if (device.process(slot).pid == 0 || newest == nullptr) continue;
      if (samples != nullptr && found < *count)
        samples[found] = {static_cast<uint32_t>(device.process(slot).pid),
                          TimeUs(newest->period),
                          Percent(int64_t{newest->process_busy_us[slot]} * 1000),
                          0,
                          0,
                          0};
      ++found;
    }
    const bool fits = samples != nullptr && found <= *count;
    *count = samples == nullptr ? Device::kProcesses : found;
    if (samples != nullptr && found == 0) return GPUSONDE_NVML_ERROR_NOT_FOUND;
    return fits ? GPUSONDE_NVML_SUCCESS : GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetSamples(void* handle, uint32_t type, uint64_t last_seen_us,
                                          uint32_t* value_type, uint32_t* count,
                                          gpusonde_nvml_sample* samples) {
  return With(handle, count, [&](Device& device) -> Result {
    if (type > GPUSONDE_NVML_SAMPLES_MEMORY_UTILIZATION) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    if (value_type != nullptr) *value_type = GPUSONDE_NVML_VALUE_UNSIGNED_INT;
    if (samples == nullptr) {
      *count = Device::kSamples;
      return GPUSONDE_NVML_SUCCESS;
    }
    uint32_t found = 0;
    NewSamples(device, NowNs(), last_seen_us, [&](const Sample& sample) {
      if (found >= *count) return;
      gpusonde_nvml_sample& to = samples[found++];
      to = {};
      to.time_us = TimeUs(sample.period);
      if (type == GPUSONDE_NVML_SAMPLES_POWER)
        to.value.unsigned_int = static_cast<uint32_t>(
            std::lround(sample.energy_j * 1e12 / static_cast<double>(Device::kSamplePeriodNs)));
      else
        to.value.unsigned_int =
            Percent(type == GPUSONDE_NVML_SAMPLES_UTILIZATION ? sample.busy_ns : sample.copy_ns);
    });
    *count = found;
    return found == 0 ? GPUSONDE_NVML_ERROR_NOT_FOUND : GPUSONDE_NVML_SUCCESS;
  });
}
