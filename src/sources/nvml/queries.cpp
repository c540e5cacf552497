// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/queries.h"

#include <algorithm>
#include <array>
#include <map>

#include "sources/nvml/counter_queries.h"

namespace gpusonde::nvml {
namespace {

using model::Metric;
using Result = gpusonde_nvml_result;

constexpr Result kDone = GPUSONDE_NVML_SUCCESS;
constexpr Result kMissing = GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;

// Upper bounds that no device comes near, well below the markers for "no value".
constexpr uint64_t kMaxPercent = 100;
constexpr uint64_t kMaxMhz = 100'000;
constexpr uint64_t kMaxMilliwatts = 100'000'000;
constexpr uint64_t kMaxCelsius = 250;
constexpr uint64_t kMaxKilobytesPerSecond = 2'000'000'000;  // PCIe 7.0 × 16 is 242 GB/s
constexpr uint64_t kMaxGeneration = 15;
constexpr uint64_t kMaxLanes = 64;
constexpr uint64_t kMaxReplays = UINT32_MAX - 1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr uint64_t kMaxExact = uint64_t{1} << 53;  // a double holds every integer up to here
constexpr size_t kFirstProcesses = 64;
constexpr size_t kMaxProcesses = 8192;

// The bits are NVML's.
static_assert(model::kThrottleIdle == GPUSONDE_NVML_THROTTLE_GPU_IDLE);
static_assert(model::kThrottlePowerCap == GPUSONDE_NVML_THROTTLE_SW_POWER_CAP);
static_assert(model::kSlowingThrottleBits ==
              (GPUSONDE_NVML_THROTTLE_SW_POWER_CAP | GPUSONDE_NVML_THROTTLE_HW_SLOWDOWN |
               GPUSONDE_NVML_THROTTLE_SW_THERMAL | GPUSONDE_NVML_THROTTLE_HW_THERMAL |
               GPUSONDE_NVML_THROTTLE_HW_POWER_BRAKE));

Result PutU32(gpusonde_nvml_device_u32_fn* function, void* device, Readings& readings, Metric metric,
              uint64_t most, double scale = 1) {
  if (function == nullptr) return kMissing;
  uint32_t value = UINT32_MAX;
  const Result result = function(device, &value);
  if (result == kDone) readings.Put(metric, value, most, scale);
  return result;
}

Result PutU64(gpusonde_nvml_device_u64_fn* function, void* device, Readings& readings, Metric metric,
              uint64_t most, double scale = 1) {
  if (function == nullptr) return kMissing;
  uint64_t value = UINT64_MAX;
  const Result result = function(device, &value);
  if (result == kDone) readings.Put(metric, value, most, scale);
  return result;
}

Result PutWhich(gpusonde_nvml_device_which_u32_fn* function, void* device, uint32_t which, Readings& readings,
                Metric metric, uint64_t most, double scale = 1) {
  if (function == nullptr) return kMissing;
  uint32_t value = UINT32_MAX;
  const Result result = function(device, which, &value);
  if (result == kDone) readings.Put(metric, value, most, scale);
  return result;
}

Result PutEcc(const Functions& f, void* device, Readings& readings, uint32_t type, Metric metric) {
  if (f.ecc_errors == nullptr) return kMissing;
  uint64_t count = UINT64_MAX;
  const Result result = f.ecc_errors(device, type, GPUSONDE_NVML_VOLATILE_ECC, &count);
  if (result == kDone) readings.Put(metric, count, kMaxExact);
  return result;
}

Result QueryUtilization(const Functions& f, void* device, DeviceCache&, Readings& readings) {
  if (f.utilization == nullptr) return kMissing;
  gpusonde_nvml_utilization rates{UINT32_MAX, UINT32_MAX};
  const Result result = f.utilization(device, &rates);
  if (result != kDone) return result;
  readings.Put(Metric::kGpuUtilization, rates.gpu, kMaxPercent);
  readings.Put(Metric::kGpuMemoryUtilization, rates.memory, kMaxPercent);
  return kDone;
}

void PutMemory(uint64_t used, uint64_t total, Readings& readings) {
  readings.Put(Metric::kGpuMemoryUsed, used, std::min(total, kMaxBytes));
}

// The newer call separates the memory used by programs from the driver's own.
Result QueryMemory(const Functions& f, void* device, DeviceCache& cache, Readings& readings) {
  if (f.memory_v2 != nullptr && !cache.plain_memory_info) {
    gpusonde_nvml_memory_v2 info{};
    info.version = GPUSONDE_NVML_MEMORY_V2;
    const Result result = f.memory_v2(device, &info);
    if (result == kDone) PutMemory(info.used, info.total, readings);
    cache.plain_memory_info = result == GPUSONDE_NVML_ERROR_NOT_SUPPORTED || result == kMissing ||
                              result == GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!cache.plain_memory_info) return result;
  }
  if (f.memory == nullptr) return kMissing;
  gpusonde_nvml_memory info{};
  const Result result = f.memory(device, &info);
  if (result == kDone) PutMemory(info.used, info.total, readings);
  return result;
}

Result QueryThrottleReasons(const Functions& f, void* device, DeviceCache&, Readings& readings) {
  return PutU64(f.event_reasons != nullptr ? f.event_reasons : f.throttle_reasons, device, readings,
                Metric::kGpuThrottleReasons, kMaxExact);
}

// Calls fill(buffer, &count) with a growing buffer until all entries fit; `count` is then their number.
template <class Item, class Fill>
Result FillList(std::vector<Item>& items, Fill fill) {
  for (size_t room = kFirstProcesses;; room *= 4) {
    items.assign(room, Item{});
    auto count = static_cast<uint32_t>(room);
    const Result result = fill(items.data(), &count);
    if (result == GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE && room < kMaxProcesses) continue;
    items.resize(result == kDone ? std::min<size_t>(count, room) : 0);
    return result;
  }
}

bool IsPid(uint32_t pid) { return pid > 0 && pid <= INT32_MAX; }

Result QueryProcesses(const Functions& f, void* device, DeviceCache&, Readings& readings) {
  if (f.processes == nullptr) return kMissing;
  std::vector<gpusonde_nvml_process> processes;
  const Result result =
      FillList(processes, [&](gpusonde_nvml_process* to, uint32_t* n) { return f.processes(device, n, to); });
  for (const gpusonde_nvml_process& process : processes) {
    // A process in another pid namespace, or a driver that doesn't count memory by process.
    if (process.pid == 0 || process.used_bytes == GPUSONDE_NVML_NOT_AVAILABLE) continue;
    if (!IsPid(process.pid))
      readings.CountAbsurd();
    else
      readings.Put(Metric::kGpuProcessMemoryUsed, process.used_bytes, kMaxBytes, 1,
                   static_cast<int32_t>(process.pid));
  }
  return result;
}

// Samples have times of an unspecified clock, which only show which samples are new. Those of the first call
// are from before the poller started.
Result QueryProcessUtilization(const Functions& f, void* device, DeviceCache& cache, Readings& readings) {
  if (f.process_utilization == nullptr) return kMissing;
  std::vector<gpusonde_nvml_process_sample> samples;
  Result result = FillList(samples, [&](gpusonde_nvml_process_sample* to, uint32_t* n) {
    return f.process_utilization(device, to, n, cache.last_process_sample_us);
  });
  if (result == GPUSONDE_NVML_ERROR_NOT_FOUND) result = kDone;  // nothing new
  struct Sum {
    uint64_t percent = 0, count = 0;
  };
  std::map<uint32_t, Sum> sums;
  const uint64_t seen_us = cache.last_process_sample_us;
  for (const gpusonde_nvml_process_sample& sample : samples) {
    // An empty entry, or a sample that was returned before.
    if (sample.pid == 0 || sample.time_us <= seen_us) continue;
    // A time near the maximum would hide every later sample.
    if (sample.sm > kMaxPercent || !IsPid(sample.pid) || sample.time_us > kMaxExact) {
      readings.CountAbsurd();
      continue;
    }
    cache.last_process_sample_us = std::max(cache.last_process_sample_us, sample.time_us);
    sums[sample.pid].percent += sample.sm;
    ++sums[sample.pid].count;
  }
  if (cache.process_samples_begun)
    for (const auto& [pid, sum] : sums)
      readings.Put(Metric::kGpuProcessUtilization, sum.percent, kMaxPercent * sum.count,
                   1.0 / static_cast<double>(sum.count), static_cast<int32_t>(pid));
  cache.process_samples_begun |= result == kDone;
  return result;
}

}  // namespace

bool IsUnsupported(gpusonde_nvml_result result) {
  return result == GPUSONDE_NVML_ERROR_NOT_SUPPORTED || result == GPUSONDE_NVML_ERROR_NO_PERMISSION ||
         result == GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND ||
         result == GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

std::span<const Query> AllQueries() {
  using F = const Functions&;
  using C = DeviceCache&;
  using R = Readings&;
  static constexpr std::array kQueries = {
      Query{"utilization", Cadence::kEveryRound, false, QueryUtilization},
      Query{"memory", Cadence::kEveryRound, true, QueryMemory},
      Query{"throttle reasons", Cadence::kEveryRound, false, QueryThrottleReasons},
      Query{"SM clock", Cadence::kEveryRound, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.clock, device, GPUSONDE_NVML_CLOCK_SM, readings, Metric::kGpuClockSm,
                              kMaxMhz);
            }},
      Query{"power", Cadence::kEveryRound, false,
            [](F f, void* device, C, R readings) {
              return PutU32(f.power, device, readings, Metric::kGpuPower, kMaxMilliwatts, 1e-3);
            }},
      Query{"PCIe sent", Cadence::kEveryRound, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.pcie_throughput, device, GPUSONDE_NVML_PCIE_TX_BYTES, readings,
                              Metric::kGpuPcieTx, kMaxKilobytesPerSecond, 1e3);
            }},
      Query{"PCIe received", Cadence::kEveryRound, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.pcie_throughput, device, GPUSONDE_NVML_PCIE_RX_BYTES, readings,
                              Metric::kGpuPcieRx, kMaxKilobytesPerSecond, 1e3);
            }},
      Query{"memory clock", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.clock, device, GPUSONDE_NVML_CLOCK_MEM, readings, Metric::kGpuClockMemory,
                              kMaxMhz);
            }},
      Query{"temperature", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.temperature, device, GPUSONDE_NVML_TEMPERATURE_GPU, readings,
                              Metric::kGpuTemperature, kMaxCelsius);
            }},
      Query{"slowdown temperature", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutWhich(f.temperature_threshold, device, GPUSONDE_NVML_THRESHOLD_SLOWDOWN, readings,
                              Metric::kGpuTemperatureSlowdown, kMaxCelsius);
            }},
      Query{"power limit", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutU32(f.power_limit, device, readings, Metric::kGpuPowerLimit, kMaxMilliwatts, 1e-3);
            }},
      Query{"energy", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutU64(f.energy, device, readings, Metric::kGpuEnergy, kMaxExact, 1e-3);
            }},
      Query{"PCIe generation", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutU32(f.pcie_generation, device, readings, Metric::kGpuPcieGeneration, kMaxGeneration);
            }},
      Query{"PCIe lanes", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutU32(f.pcie_width, device, readings, Metric::kGpuPcieWidth, kMaxLanes);
            }},
      Query{"PCIe replays", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutU32(f.pcie_replays, device, readings, Metric::kGpuPcieReplays, kMaxReplays);
            }},
      Query{"ECC errors corrected", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutEcc(f, device, readings, GPUSONDE_NVML_ERRORS_CORRECTED, Metric::kGpuEccCorrected);
            }},
      Query{"ECC errors not corrected", Cadence::kEverySecond, false,
            [](F f, void* device, C, R readings) {
              return PutEcc(f, device, readings, GPUSONDE_NVML_ERRORS_UNCORRECTED,
                            Metric::kGpuEccUncorrected);
            }},
      Query{"memory by process", Cadence::kEverySecond, false, QueryProcesses},
      Query{"utilization by process", Cadence::kEverySecond, false, QueryProcessUtilization},
      Query{"NVLink counters", Cadence::kEveryFiveSeconds, false, QueryNvlink},
      Query{"remapped rows", Cadence::kEveryFiveSeconds, false, QueryRemappedRows},
      Query{"SM activity (GPM)", Cadence::kEverySecond, true, QueryGpm},
  };
  return kQueries;
}

}  // namespace gpusonde::nvml
