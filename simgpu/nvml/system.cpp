// SPDX-License-Identifier: Apache-2.0
// Initialisation, shutdown and enumeration of devices.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

std::atomic<int> uses = 0;

void Uuid(const DeviceModel& model, char (&text)[GPUSONDE_NVML_UUID_BYTES],
          std::optional<uint32_t> instance = std::nullopt) {
  const uint8_t* b = model.uuid;
  std::snprintf(text, sizeof text, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                instance.has_value() ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
                b[9], b[10], b[11], b[12], b[13], instance.has_value() ? *instance + 1 : b[14], b[15]);
}

// The first device for which is_it holds.
template <class IsIt>
Result Find(void** handle, IsIt is_it) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (handle == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < TheMachine().device_count(); ++i) {
    if (!is_it(TheMachine().model(i), i)) continue;
    *handle = HandleOf(i);
    return GPUSONDE_NVML_SUCCESS;
  }
  return GPUSONDE_NVML_ERROR_NOT_FOUND;
}

}  // namespace

Result Ready() { return uses > 0 ? GPUSONDE_NVML_SUCCESS : GPUSONDE_NVML_ERROR_UNINITIALIZED; }

Machine& TheMachine() { return *Machine::Get(); }

// Handles are numbers and never dereferenced.
void* HandleOf(uint32_t ordinal) {
  return reinterpret_cast<void*>(uintptr_t{ordinal} + 1);  // NOLINT(performance-no-int-to-ptr)
}

std::optional<uint32_t> OrdinalOf(void* handle) {
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value == 0 || value > TheMachine().device_count()) return std::nullopt;
  return static_cast<uint32_t>(value - 1);
}

Result CopyText(char* target, uint32_t bytes, const char* text) {
  if (target == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  if (std::strlen(text) >= bytes) return GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(target, text, std::strlen(text) + 1);
  return GPUSONDE_NVML_SUCCESS;
}

}  // namespace simgpu::nvml

using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result nvmlInit_v2() {
  if (simgpu::Machine::Get() == nullptr) return GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED;
  ++uses;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlInitWithFlags(unsigned /*flags*/) { return nvmlInit_v2(); }

SIMGPU_EXPORT Result nvmlShutdown() {
  if (uses == 0) return GPUSONDE_NVML_ERROR_UNINITIALIZED;
  --uses;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT const char* nvmlErrorString(Result result) {
  switch (result) {
    case GPUSONDE_NVML_SUCCESS:
      return "Success";
    case GPUSONDE_NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case GPUSONDE_NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case GPUSONDE_NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case GPUSONDE_NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case GPUSONDE_NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case GPUSONDE_NVML_ERROR_TIMEOUT:
      return "Timeout";
    default:
      return "Unknown Error";
  }
}

SIMGPU_EXPORT Result nvmlSystemGetDriverVersion(char* text, uint32_t bytes) {
  const Result result = Ready();
  return result != GPUSONDE_NVML_SUCCESS ? result : CopyText(text, bytes, "580.00 (simulated)");
}

SIMGPU_EXPORT Result nvmlSystemGetNVMLVersion(char* text, uint32_t bytes) {
  const Result result = Ready();
  return result != GPUSONDE_NVML_SUCCESS ? result : CopyText(text, bytes, "13.580.00");
}

SIMGPU_EXPORT Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (version == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *version = 13'000;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlDeviceGetCount_v2(uint32_t* count) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (count == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *count = TheMachine().device_count();
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlDeviceGetHandleByIndex_v2(uint32_t index, void** handle) {
  const Result result = Find(handle, [&](const auto&, uint32_t ordinal) { return ordinal == index; });
  return result == GPUSONDE_NVML_ERROR_NOT_FOUND ? GPUSONDE_NVML_ERROR_INVALID_ARGUMENT : result;
}

SIMGPU_EXPORT Result nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  return Find(handle, [&](const simgpu::DeviceModel& model, uint32_t) {
    char own[GPUSONDE_NVML_UUID_BYTES];
    Uuid(model, own);
    return uuid != nullptr && std::strcmp(own, uuid) == 0;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  // Both "0000:10:00.0" and "00000000:10:00.0" are used.
  const char* tail = bus_id == nullptr ? nullptr : std::strchr(bus_id, ':');
  return Find(handle, [&](const simgpu::DeviceModel& model, uint32_t) {
    return tail != nullptr && std::strcmp(std::strchr(model.pci_bus_id, ':'), tail) == 0;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetIndex(void* handle, uint32_t* index) {
  return With(handle, index, [&](simgpu::Device&) {
    *index = *OrdinalOf(handle);
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetMinorNumber(void* handle, uint32_t* minor) {
  return nvmlDeviceGetIndex(handle, minor);
}

SIMGPU_EXPORT Result nvmlDeviceGetName(void* handle, char* text, uint32_t bytes) {
  if (const auto instance = InstanceOf(handle); instance.has_value()) {
    char name[GPUSONDE_NVML_NAME_BYTES];
    std::snprintf(name, sizeof name, "%s MIG 3g.40gb", TheMachine().model(instance->ordinal).name);
    return CopyText(text, bytes, name);
  }
  return With(handle, text,
              [&](simgpu::Device& device) { return CopyText(text, bytes, device.model().name); });
}

SIMGPU_EXPORT Result nvmlDeviceGetUUID(void* handle, char* text, uint32_t bytes) {
  char uuid[GPUSONDE_NVML_UUID_BYTES];
  if (const auto instance = InstanceOf(handle); instance.has_value()) {
    Uuid(TheMachine().model(instance->ordinal), uuid, instance->index);
    return CopyText(text, bytes, uuid);
  }
  return With(handle, text, [&](simgpu::Device& device) {
    Uuid(device.model(), uuid);
    return CopyText(text, bytes, uuid);
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetPciInfo_v3(void* handle, gpusonde_nvml_pci_info* info) {
  return With(handle, info, [&](simgpu::Device& device) {
    *info = {};
    std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%s", device.model().pci_bus_id);
    std::snprintf(info->bus_id, sizeof info->bus_id, "0000%s", device.model().pci_bus_id);
    info->bus = static_cast<uint32_t>(std::strtoul(std::strchr(info->bus_id_legacy, ':') + 1, nullptr, 16));
    info->pci_device_id = 0x10DE;  // NVIDIA's vendor id, with an unused device id
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  return With(handle, major, [&](simgpu::Device& device) {
    *major = device.model().compute_major;
    if (minor != nullptr) *minor = device.model().compute_minor;
    return GPUSONDE_NVML_SUCCESS;
  });
}
