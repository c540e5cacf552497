// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/gpm.h"

#include <fmt/format.h>

#include <utility>

namespace gpusonde::nvml {
namespace {

using GpmResult = gpusonde_nvml_result;

bool HasGpm(const Functions& f, bool instance) {
  return f.gpm_support != nullptr && f.gpm_alloc != nullptr && f.gpm_free != nullptr &&
         f.gpm_metrics != nullptr && (instance ? f.gpm_mig_sample != nullptr : f.gpm_sample != nullptr);
}

}  // namespace

GpmResult GpmSamples::Create(const Functions& functions, void* device, std::optional<uint32_t> gpu_instance,
                             std::unique_ptr<GpmSamples>& created) {
  if (!HasGpm(functions, gpu_instance.has_value())) return GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND;
  gpusonde_nvml_gpm_support support{};
  support.version = GPUSONDE_NVML_GPM_SUPPORT_VERSION;
  if (const GpmResult result = functions.gpm_support(device, &support); result != GPUSONDE_NVML_SUCCESS)
    return result;
  if (support.supported == 0) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
  std::unique_ptr<GpmSamples> samples(new GpmSamples(functions, device, gpu_instance));
  for (void*& sample : samples->samples_)
    if (const GpmResult result = functions.gpm_alloc(&sample); result != GPUSONDE_NVML_SUCCESS) {
      sample = nullptr;
      return result;
    }
  created = std::move(samples);
  return GPUSONDE_NVML_SUCCESS;
}

GpmResult GpmSamples::Take(gpusonde_nvml_gpm_metrics& metrics, bool& known) {
  known = false;
  const GpmResult taken = gpu_instance_.has_value()
                              ? functions_.gpm_mig_sample(device_, *gpu_instance_, samples_[0])
                              : functions_.gpm_sample(device_, samples_[0]);
  if (taken != GPUSONDE_NVML_SUCCESS) return taken;
  std::swap(samples_[0], samples_[1]);
  if (!std::exchange(has_last_, true)) return GPUSONDE_NVML_SUCCESS;
  metrics.version = GPUSONDE_NVML_GPM_METRICS_GET_VERSION;
  metrics.sample1 = samples_[0];
  metrics.sample2 = samples_[1];
  const GpmResult calculated = functions_.gpm_metrics(&metrics);
  known = calculated == GPUSONDE_NVML_SUCCESS;
  return calculated;
}

GpmSamples::~GpmSamples() {
  for (void* sample : samples_)
    if (sample != nullptr) functions_.gpm_free(sample);
}

std::string WhyNoGpm(const Library& library, const Device& device) {
  std::unique_ptr<GpmSamples> samples;
  const bool instance = device.mig.has_value();
  GpmResult result =
      GpmSamples::Create(library.functions(), instance ? device.mig->parent : device.handle,
                         instance ? std::optional(device.mig->gpu_instance) : std::nullopt, samples);
  if (result == GPUSONDE_NVML_SUCCESS) {
    gpusonde_nvml_gpm_metrics metrics{};
    bool known = false;
    result = samples->Take(metrics, known);
  }
  switch (result) {
    case GPUSONDE_NVML_SUCCESS:
      return {};
    case GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND:
    case GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "the driver is too old: 525 and newer have GPM";
    case GPUSONDE_NVML_ERROR_NOT_SUPPORTED:
      return "the device has no GPM: those before Hopper (H100) don't, nor do some virtual ones";
    case GPUSONDE_NVML_ERROR_NO_PERMISSION:
      return "the driver gives this user no permission";
    default:
      return library.Explain(result);
  }
}

}  // namespace gpusonde::nvml
