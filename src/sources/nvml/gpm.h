// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sources/nvml/library.h"

namespace gpusonde::nvml {

// NVML's GPM (GPU performance monitoring): the driver samples a device's performance counters, and calculates
// metrics from two samples. Hopper and newer; the counters run all the time, so other profilers are not
// disturbed. This holds the last two samples. `functions` and the device must outlive it. Not thread-safe.
class GpmSamples {
 public:
  // Of a device, or with `gpu_instance` of that MIG instance of it. Sets `created` on success; else
  // FUNCTION_NOT_FOUND in a driver without GPM, NOT_SUPPORTED on a device without, or the driver's error.
  static gpusonde_nvml_result Create(const Functions& functions, void* device,
                                     std::optional<uint32_t> gpu_instance,
                                     std::unique_ptr<GpmSamples>& created);

  // Takes a sample. After the first one also fills `metrics`, whose count and ids the caller has set, with
  // their means since the sample before, and sets `known`; each metric has a result of its own. The two
  // should be more than 100 ms apart. On an error the next sample is compared with the last one that was
  // taken.
  gpusonde_nvml_result Take(gpusonde_nvml_gpm_metrics& metrics, bool& known);

  GpmSamples(const GpmSamples&) = delete;
  GpmSamples& operator=(const GpmSamples&) = delete;
  ~GpmSamples();

 private:
  GpmSamples(const Functions& functions, void* device, std::optional<uint32_t> gpu_instance)
      : functions_(functions), device_(device), gpu_instance_(gpu_instance) {}

  const Functions& functions_;
  void* device_;
  std::optional<uint32_t> gpu_instance_;
  std::array<void*, 2> samples_{};  // the next one to overwrite comes first
  bool has_last_ = false;           // the second one is filled
};

// Why GPM can't be read from a device, for a user, found by taking a sample; empty if it can.
std::string WhyNoGpm(const Library& library, const Device& device);

}  // namespace gpusonde::nvml
