// SPDX-License-Identifier: Apache-2.0
// Initialisation and devices.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "simgpu/machine/settings.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

constexpr int kDriverVersion = 13000;

// Loads the tool library named in CUDA_INJECTION64_PATH once the driver is initialised, and calls its entry
// point. A library that can't be loaded is ignored silently, so that programs run without it.
void LoadInjection() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto* initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

Result Initialize(unsigned flags) {
  if (flags != 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Driver& driver = TheDriver();
  if (driver.forked) return GPUSONDE_CU_ERROR_NOT_INITIALIZED;
  {
    const std::lock_guard lock(driver.mutex);
    if (driver.initialised) return GPUSONDE_CU_SUCCESS;
    driver.machine = Machine::Get();
    if (driver.machine == nullptr) {
      if (IntegerSetting("SIMGPU_VERBOSE", 0, 0, 1) != 0) std::fprintf(stderr, "%s\n", Machine::error());
      return GPUSONDE_CU_ERROR_NO_DEVICE;
    }
    driver.primary.resize(driver.machine->device_count());
    driver.default_kernel_ns = IntegerSetting("SIMGPU_KERNEL_NS", 5'000, 1, 3'600'000'000'000);
    ::pthread_atfork(nullptr, nullptr, [] { TheDriver().forked = true; });
    driver.initialised = true;
  }
  LoadInjection();
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_CU_INIT_FINISHED;
  NotifyResource(event);
  return GPUSONDE_CU_SUCCESS;
}

bool ValidDevice(int device) {
  return device >= 0 && device < static_cast<int>(TheDriver().machine->device_count());
}

// SUCCESS for a device that exists.
Result ReadyWithDevice(int device) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  return ValidDevice(device) ? GPUSONDE_CU_SUCCESS : GPUSONDE_CU_ERROR_INVALID_DEVICE;
}

int Attribute(const DeviceModel& model, int attribute) {
  switch (attribute) {
    case GPUSONDE_CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_X:
      return INT32_MAX;
    case GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_Y:
    case GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case GPUSONDE_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case GPUSONDE_CU_ATTRIBUTE_WARP_SIZE:
      return 32;
    case GPUSONDE_CU_ATTRIBUTE_CLOCK_RATE:
      return model.sm_clock_mhz * 1000;
    case GPUSONDE_CU_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return model.memory_clock_mhz * 1000;
    case GPUSONDE_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return model.sms;
    case GPUSONDE_CU_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return model.max_threads_per_sm;
    case GPUSONDE_CU_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case GPUSONDE_CU_ATTRIBUTE_GPU_OVERLAP:
    case GPUSONDE_CU_ATTRIBUTE_CONCURRENT_KERNELS:
    case GPUSONDE_CU_ATTRIBUTE_ECC_ENABLED:
    case GPUSONDE_CU_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case GPUSONDE_CU_ATTRIBUTE_PCI_BUS_ID:
      return static_cast<int>(std::strtol(model.pci_bus_id + std::strlen("0000:"), nullptr, 16));
    case GPUSONDE_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return model.compute_major;
    case GPUSONDE_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return model.compute_minor;
    default:
      return 0;  // a feature that simgpu doesn't have
  }
}

Result CopyText(char* target, int bytes, const char* text) {
  if (target == nullptr || bytes <= 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  std::snprintf(target, static_cast<size_t>(bytes), "%s", text);
  return GPUSONDE_CU_SUCCESS;
}

const DeviceModel& Model(int device) { return TheDriver().machine->model(static_cast<uint32_t>(device)); }

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuInit(unsigned flags) {
  const struct {
    unsigned flags;
  } params{flags};
  ApiCall call(kCall_cuInit, "cuInit", &params);
  return call.Return(Initialize(flags));
}

SIMGPU_EXPORT Result cuDriverGetVersion(int* version) {
  if (version == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDeviceGetCount(int* count) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (count == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *count = static_cast<int>(TheDriver().machine->device_count());
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDeviceGet(int* device, int ordinal) {
  const Result result = ReadyWithDevice(ordinal);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (device == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *device = ordinal;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDeviceGetName(char* name, int bytes, int device) {
  const Result result = ReadyWithDevice(device);
  return result != GPUSONDE_CU_SUCCESS ? result : CopyText(name, bytes, Model(device).name);
}

SIMGPU_EXPORT Result cuDeviceGetPCIBusId(char* id, int bytes, int device) {
  const Result result = ReadyWithDevice(device);
  return result != GPUSONDE_CU_SUCCESS ? result : CopyText(id, bytes, Model(device).pci_bus_id);
}

SIMGPU_EXPORT Result cuDeviceGetUuid_v2(gpusonde_cu_uuid* uuid, int device) {
  const Result result = ReadyWithDevice(device);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (uuid == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, Model(device).uuid, sizeof uuid->bytes);
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDeviceGetUuid(gpusonde_cu_uuid* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

SIMGPU_EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  const Result result = ReadyWithDevice(device);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (bytes == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *bytes = static_cast<size_t>(Model(device).memory_bytes);
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  const Result result = ReadyWithDevice(device);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (value == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *value = Attribute(Model(device), attribute);
  return GPUSONDE_CU_SUCCESS;
}
