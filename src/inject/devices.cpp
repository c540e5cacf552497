// SPDX-License-Identifier: Apache-2.0
#include "inject/devices.h"

#include <stddef.h>

#include "inject/libc.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

// CUDA driver API, "Device Management" (docs.nvidia.com/cuda/cuda-driver-api): all return CUresult, 0 for
// success, and take a CUdevice, an int.
using GetDevice = int(int* device, int ordinal);                  // cuDeviceGet
using GetUuid = int(uint8_t (*uuid)[16], int device);             // cuDeviceGetUuid(_v2)
using GetText = int(char* text, int length, int device);          // cuDeviceGetName, cuDeviceGetPCIBusId
using GetMemory = int(size_t* bytes, int device);                 // cuDeviceTotalMem_v2
using GetAttribute = int(int* value, int attribute, int device);  // cuDeviceGetAttribute
constexpr int kMultiprocessorCount = 16;                          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(FindSymbol(library, name));
}

}  // namespace

void SendDevice(uint32_t ordinal, uint32_t session, Batch& out) {
  auto* record =
      static_cast<gpusonde_gpu_device*>(out.Add(session, GPUSONDE_GPU_DEVICE, sizeof(gpusonde_gpu_device)));
  record->ordinal = ordinal;
  void* driver = OpenLibrary("libcuda.so.1", true);
  if (driver == nullptr) return;
  auto* get_device = Find<GetDevice>(driver, "cuDeviceGet");
  int device = 0;
  if (get_device == nullptr || get_device(&device, static_cast<int>(ordinal)) != 0) return;

  auto* get_uuid = Find<GetUuid>(driver, "cuDeviceGetUuid_v2");  // for a MIG slice, the slice's own
  if (get_uuid == nullptr) get_uuid = Find<GetUuid>(driver, "cuDeviceGetUuid");
  if (get_uuid != nullptr) get_uuid(&record->uuid, device);
  if (auto* get_name = Find<GetText>(driver, "cuDeviceGetName"))
    get_name(record->name, sizeof record->name - 1, device);
  if (auto* get_bus = Find<GetText>(driver, "cuDeviceGetPCIBusId"))
    get_bus(record->pci_bus, sizeof record->pci_bus - 1, device);
  size_t bytes = 0;
  if (auto* get_memory = Find<GetMemory>(driver, "cuDeviceTotalMem_v2"))
    if (get_memory(&bytes, device) == 0) record->memory_bytes = bytes;
  int processors = 0;
  if (auto* get_attribute = Find<GetAttribute>(driver, "cuDeviceGetAttribute"))
    if (get_attribute(&processors, kMultiprocessorCount, device) == 0)
      record->sm_count = static_cast<uint32_t>(processors);
}

}  // namespace gpusonde::inject
