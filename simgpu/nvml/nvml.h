// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "simgpu/machine/machine.h"
#include "wire/nvidia/nvml.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::nvml {

using Result = gpusonde_nvml_result;

// SUCCESS between nvmlInit_v2 and nvmlShutdown.
Result Ready();
Machine& TheMachine();  // only then

// A handle is the ordinal + 1, as a pointer; nullopt for an invalid one.
void* HandleOf(uint32_t ordinal);
std::optional<uint32_t> OrdinalOf(void* handle);

// Checks the handle and the output pointer, then calls read(device) with the device locked and up to date.
template <class Value, class Read>
Result With(void* handle, Value* value, Read read) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  const std::optional<uint32_t> ordinal = OrdinalOf(handle);
  if (!ordinal.has_value() || value == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  Machine::Locked device(TheMachine(), *ordinal);
  device->Advance(NowNs());
  return read(*device);
}

Result CopyText(char* target, uint32_t bytes, const char* text);

bool HasGpm(const Device& device);

// Whether the device is divided into kInstances MIG instances.
bool HasMig(const Device& device);
inline constexpr uint32_t kInstances = 2;
struct Instance {
  uint32_t ordinal;
  uint32_t index;  // on its device
};
void* HandleOfInstance(const Instance& instance);
std::optional<Instance> InstanceOf(void* handle);

}  // namespace simgpu::nvml
