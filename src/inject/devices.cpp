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

struct Driver {
  GetDevice* get_device;
  GetUuid* get_uuid;
  GetText* get_name;
  GetText* get_bus;
  GetMemory* get_memory;
  GetAttribute* get_attribute;
};
Driver g_driver;

template <class Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(FindSymbol(library, name));
}

}  // namespace

void FindDriver() {
  if (g_driver.get_device != nullptr) return;
  void* library = OpenLibrary("libcuda.so.1", true);
  if (library == nullptr) return;
  Find(library, "cuDeviceGetUuid_v2", g_driver.get_uuid);  // for a MIG slice, the slice's own
  if (g_driver.get_uuid == nullptr) Find(library, "cuDeviceGetUuid", g_driver.get_uuid);
  Find(library, "cuDeviceGetName", g_driver.get_name);
  Find(library, "cuDeviceGetPCIBusId", g_driver.get_bus);
  Find(library, "cuDeviceTotalMem_v2", g_driver.get_memory);
  Find(library, "cuDeviceGetAttribute", g_driver.get_attribute);
  Find(library, "cuDeviceGet", g_driver.get_device);
}

void SendDevice(uint32_t ordinal, uint32_t session, Batch& out) {
  auto* record =
      static_cast<gpusonde_gpu_device*>(out.Add(session, GPUSONDE_GPU_DEVICE, sizeof(gpusonde_gpu_device)));
  record->ordinal = ordinal;
  int device = 0;
  if (g_driver.get_device == nullptr || g_driver.get_device(&device, static_cast<int>(ordinal)) != 0) return;
  if (g_driver.get_uuid != nullptr) g_driver.get_uuid(&record->uuid, device);
  if (g_driver.get_name != nullptr) g_driver.get_name(record->name, sizeof record->name - 1, device);
  if (g_driver.get_bus != nullptr) g_driver.get_bus(record->pci_bus, sizeof record->pci_bus - 1, device);
  size_t bytes = 0;
  if (g_driver.get_memory != nullptr && g_driver.get_memory(&bytes, device) == 0)
    record->memory_bytes = bytes;
  int processors = 0;
  if (g_driver.get_attribute != nullptr &&
      g_driver.get_attribute(&processors, kMultiprocessorCount, device) == 0)
    record->sm_count = static_cast<uint32_t>(processors);
}

}  // namespace gpusonde::inject
