// SPDX-License-Identifier: Apache-2.0
// MIG: with SIMGPU_MIG=1 each device that could be divided has two instances of half its SMs and memory.
#include "simgpu/machine/settings.h"
#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

// Beyond the handles of devices.
constexpr uintptr_t kFirstInstance = 0x100;
// What a real device can be divided into; most of these indices have no instance.
constexpr uint32_t kMaxInstances = 7;

}  // namespace

bool HasMig(const Device& device) {
  constexpr int32_t kAmpere = 8;
  static const bool enabled = IntegerSetting("SIMGPU_MIG", 0, 0, 1) == 1;
  return enabled && device.model().compute_major >= kAmpere;
}

// Handles are numbers and never dereferenced.
void* HandleOfInstance(const Instance& instance) {
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      kFirstInstance + uintptr_t{instance.ordinal} * kInstances + instance.index);
}

std::optional<Instance> InstanceOf(void* handle) {
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (Ready() != GPUSONDE_NVML_SUCCESS || value < kFirstInstance) return std::nullopt;
  const uintptr_t ordinal = (value - kFirstInstance) / kInstances;
  if (ordinal >= TheMachine().device_count()) return std::nullopt;
  return Instance{static_cast<uint32_t>(ordinal),
                  static_cast<uint32_t>((value - kFirstInstance) % kInstances)};
}

}  // namespace simgpu::nvml

using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result nvmlDeviceGetMigMode(void* handle, uint32_t* current, uint32_t* pending) {
  return With(handle, current, [&](simgpu::Device& device) -> Result {
    if (!HasMig(device)) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    *current = GPUSONDE_NVML_MIG_ENABLED;
    if (pending != nullptr) *pending = GPUSONDE_NVML_MIG_ENABLED;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMaxMigDeviceCount(void* handle, uint32_t* count) {
  return With(handle, count, [&](simgpu::Device& device) {
    *count = HasMig(device) ? kMaxInstances : 0;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMigDeviceHandleByIndex(void* handle, uint32_t index, void** instance) {
  return With(handle, instance, [&](simgpu::Device& device) -> Result {
    if (!HasMig(device)) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    if (index >= kMaxInstances) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
    if (index >= kInstances) return GPUSONDE_NVML_ERROR_NOT_FOUND;
    *instance = HandleOfInstance({*OrdinalOf(handle), index});
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetGpuInstanceId(void* handle, uint32_t* id) {
  const auto instance = InstanceOf(handle);
  if (!instance.has_value() || id == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *id = instance->index + 1;  // 0 would be the whole device
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlDeviceGetComputeInstanceId(void* handle, uint32_t* id) {
  if (!InstanceOf(handle).has_value() || id == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *id = 0;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlDeviceGetAttributes_v2(void* handle, gpusonde_nvml_attributes* attributes) {
  const auto instance = InstanceOf(handle);
  if (!instance.has_value()) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
  return With(HandleOf(instance->ordinal), attributes, [&](simgpu::Device& device) {
    *attributes = {};
    attributes->multiprocessors = static_cast<uint32_t>(device.model().sms) / kInstances;
    attributes->copy_engines = 3;
    attributes->gpu_instance_slices = 3;
    attributes->compute_instance_slices = 3;
    attributes->memory_mib = static_cast<uint64_t>(device.model().memory_bytes) / kInstances >> 20;
    return GPUSONDE_NVML_SUCCESS;
  });
}
