// SPDX-License-Identifier: Apache-2.0
// GPM: metrics from two samples of performance counters. The simulated ones follow the SMs that kernels
// occupy and the bytes that copies move.
#include <algorithm>
#include <cstring>
#include <optional>

#include "simgpu/machine/settings.h"
#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

// A simulated kernel doesn't say what it computes: on each SM that it occupies it has half of the warps, uses
// the tensor cores (HMMA) 40 % of the time, and takes its share of 30 % of the memory's bandwidth.
constexpr double kOccupancy = 0.5;
constexpr double kTensor = 0.4;
constexpr double kDram = 0.3;

// What an nvmlGpmSample_t points to.
struct GpmSample {
  int64_t time_ns = 0;  // 0: not taken
  Activity activity{};
  double memory_bytes_per_ns = 1;
  std::optional<uint32_t> instance;
};

Result CanSample(const Device& device, const std::optional<uint32_t>& instance) {
  if (!HasGpm(device) || (instance.has_value() && !HasMig(device))) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
  if (std::strcmp(TextSetting("SIMGPU_GPM", ""), "no-permission") == 0)
    return GPUSONDE_NVML_ERROR_NO_PERMISSION;
  return device.faults().gpm_error;
}

Result TakeSample(void* handle, void* sample, std::optional<uint32_t> instance) {
  return With(handle, sample, [&](Device& device) -> Result {
    if (const Result result = CanSample(device, instance); result != GPUSONDE_NVML_SUCCESS) return result;
    *static_cast<GpmSample*>(sample) = {NowNs(), device.activity(), device.model().memory_bytes_per_ns,
                                        instance};
    return GPUSONDE_NVML_SUCCESS;
  });
}

// Means between two samples.
class Means {
 public:
  Means(const GpmSample& from, const GpmSample& to) {
    const auto ns = static_cast<double>(to.time_ns - from.time_ns);
    // Programs run on the first instance, which has half of the SMs.
    const double in_instance = !to.instance.has_value() ? 1 : *to.instance == 0 ? kInstances : 0;
    const auto of = [&](double Activity::* part) {
      return in_instance * (to.activity.*part - from.activity.*part) / ns;
    };
    sm_ = std::min(of(&Activity::sm_ns), 1.0);
    received_ = of(&Activity::received_bytes) / std::max(in_instance, 1.0);
    sent_ = of(&Activity::sent_bytes) / std::max(in_instance, 1.0);
    dram_ =
        std::min(1.0, of(&Activity::memory_ns) + kDram * sm_ + (received_ + sent_) / to.memory_bytes_per_ns);
  }

  // Null for a metric that these devices don't have.
  std::optional<double> Of(uint32_t metric) const {
    constexpr double kMebibytesPerSecond = 1e9 / (1 << 20);
    switch (metric) {
      case GPUSONDE_NVML_GPM_SM_UTIL:
        return 100 * sm_;
      case GPUSONDE_NVML_GPM_SM_OCCUPANCY:
        return 100 * kOccupancy * sm_;
      case GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL:
      case GPUSONDE_NVML_GPM_HMMA_TENSOR_UTIL:
        return 100 * kTensor * sm_;
      case GPUSONDE_NVML_GPM_DFMA_TENSOR_UTIL:
      case GPUSONDE_NVML_GPM_IMMA_TENSOR_UTIL:
      case GPUSONDE_NVML_GPM_NVLINK_TOTAL_RX_PER_SEC:
      case GPUSONDE_NVML_GPM_NVLINK_TOTAL_TX_PER_SEC:
        return 0;
      case GPUSONDE_NVML_GPM_DRAM_BW_UTIL:
        return 100 * dram_;
      case GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC:
        return kMebibytesPerSecond * received_;
      case GPUSONDE_NVML_GPM_PCIE_TX_PER_SEC:
        return kMebibytesPerSecond * sent_;
      default:
        return std::nullopt;
    }
  }

 private:
  double sm_ = 0;        // 0…1
  double dram_ = 0;      // 0…1
  double received_ = 0;  // bytes/ns
  double sent_ = 0;
};

}  // namespace

bool HasGpm(const Device& device) {
  constexpr int32_t kHopper = 9;
  return device.model().compute_major >= kHopper &&
         std::strcmp(TextSetting("SIMGPU_GPM", ""), "unsupported") != 0;
}

}  // namespace simgpu::nvml

using namespace simgpu;        // NOLINT(google-build-using-namespace): the API's functions are global
using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): likewise

SIMGPU_EXPORT Result nvmlGpmQueryDeviceSupport(void* handle, gpusonde_nvml_gpm_support* support) {
  return With(handle, support, [&](Device& device) -> Result {
    if (support->version != GPUSONDE_NVML_GPM_SUPPORT_VERSION)
      return GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->supported = HasGpm(device) ? 1 : 0;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlGpmSampleAlloc(void** sample) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (sample == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *sample = new GpmSample;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlGpmSampleFree(void* sample) {
  if (sample == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  delete static_cast<GpmSample*>(sample);
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlGpmSampleGet(void* handle, void* sample) {
  return TakeSample(handle, sample, std::nullopt);
}

SIMGPU_EXPORT Result nvmlGpmMigSampleGet(void* handle, uint32_t gpu_instance, void* sample) {
  if (gpu_instance == 0 || gpu_instance > kInstances) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  return TakeSample(handle, sample, gpu_instance - 1);
}

SIMGPU_EXPORT Result nvmlGpmMetricsGet(gpusonde_nvml_gpm_metrics* metrics) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (metrics == nullptr || metrics->count > GPUSONDE_NVML_GPM_METRICS)
    return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  if (metrics->version != GPUSONDE_NVML_GPM_METRICS_GET_VERSION)
    return GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const auto* from = static_cast<const GpmSample*>(metrics->sample1);
  const auto* to = static_cast<const GpmSample*>(metrics->sample2);
  if (from == nullptr || to == nullptr || from->time_ns == 0 || to->time_ns <= from->time_ns)
    return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  const Means means(*from, *to);
  for (uint32_t i = 0; i < metrics->count; ++i) {
    gpusonde_nvml_gpm_metric& metric = metrics->metrics[i];
    const std::optional<double> value = means.Of(metric.metric);
    metric.result = value.has_value() ? GPUSONDE_NVML_SUCCESS : GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    metric.value = value.value_or(0);
    metric.short_name = metric.long_name = metric.unit = nullptr;
  }
  return GPUSONDE_NVML_SUCCESS;
}
