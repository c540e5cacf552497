// SPDX-License-Identifier: Apache-2.0
// Device and host memory. Device memory has addresses and sizes, but no contents: kernels compute nothing,
// and copies take their time without moving a byte.
#include <sys/mman.h>

#include <cstring>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

// Where device addresses begin: far from everything a process maps.
constexpr uint64_t kFirstAddress = 0x0D00'0000'0000;
constexpr uint64_t kAlignment = 512;

Result Allocate(uint64_t* address, size_t bytes) {
  if (address == nullptr || bytes == 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Driver& driver = TheDriver();
  const Context& context = *CurrentContext();
  const std::lock_guard lock(driver.mutex);
  {
    Machine::Locked device(*driver.machine, context.device);
    if (bytes > INT64_MAX || !device->Allocate(context.slot, static_cast<int64_t>(bytes)))
      return GPUSONDE_CU_ERROR_OUT_OF_MEMORY;
  }
  if (driver.next_address == 0) driver.next_address = kFirstAddress;
  *address = driver.next_address;
  driver.next_address += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  driver.allocations[*address] = {context.device, static_cast<int64_t>(bytes)};
  return GPUSONDE_CU_SUCCESS;
}

Result Free(uint64_t address) {
  if (address == 0) return GPUSONDE_CU_SUCCESS;
  Driver& driver = TheDriver();
  const Context& context = *CurrentContext();
  const std::lock_guard lock(driver.mutex);
  const auto found = driver.allocations.find(address);
  if (found == driver.allocations.end()) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Machine::Locked device(*driver.machine, found->second.first);
  device->Free(context.slot, found->second.second);
  driver.allocations.erase(found);
  return GPUSONDE_CU_SUCCESS;
}

Result AllocateHost(void** pointer, size_t bytes) {
  if (pointer == nullptr || bytes == 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return GPUSONDE_CU_ERROR_OUT_OF_MEMORY;
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  driver.pinned[reinterpret_cast<uintptr_t>(memory)] = bytes;
  *pointer = memory;
  return GPUSONDE_CU_SUCCESS;
}

// Removes a pinned range; returns its size, or 0 when none begins there.
size_t Unpin(void* pointer) {
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  const auto found = driver.pinned.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == driver.pinned.end()) return 0;
  const size_t bytes = found->second;
  driver.pinned.erase(found);
  return bytes;
}

// Whether one of `ranges` (keyed by begin) contains `address`; SizeOf returns a range's length.
template <class Map, class SizeOf>
bool Holds(const Map& ranges, uint64_t address, SizeOf size_of) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return false;
  --after;
  return address - after->first < static_cast<uint64_t>(size_of(after->second));
}

bool IsDevice(uint64_t address) {
  return Holds(TheDriver().allocations, address, [](const auto& allocation) { return allocation.second; });
}

uint8_t MemoryKind(uint64_t address) {
  if (IsDevice(address)) return GPUSONDE_CUPTI_MEMORY_DEVICE;
  return Holds(TheDriver().pinned, address, [](size_t bytes) { return bytes; })
             ? GPUSONDE_CUPTI_MEMORY_PINNED
             : GPUSONDE_CUPTI_MEMORY_PAGEABLE;
}

}  // namespace

Transfer Classify(uint64_t target, uint64_t source) {
  const std::lock_guard lock(TheDriver().mutex);
  Transfer transfer;
  transfer.source_kind = MemoryKind(source);
  transfer.target_kind = MemoryKind(target);
  const bool from_device = transfer.source_kind == GPUSONDE_CUPTI_MEMORY_DEVICE;
  const bool to_device = transfer.target_kind == GPUSONDE_CUPTI_MEMORY_DEVICE;
  transfer.copy_kind = from_device ? (to_device ? GPUSONDE_CUPTI_MEMCPY_DTOD : GPUSONDE_CUPTI_MEMCPY_DTOH)
                                   : (to_device ? GPUSONDE_CUPTI_MEMCPY_HTOD : GPUSONDE_CUPTI_MEMCPY_HTOH);
  return transfer;
}

}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (free_bytes == nullptr || total_bytes == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  simgpu::Machine::Locked device(*TheDriver().machine, CurrentContext()->device);
  *total_bytes = static_cast<size_t>(device->model().memory_bytes);
  *free_bytes = static_cast<size_t>(device->model().memory_bytes - device->used_bytes());
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  const struct {
    uint64_t* address;
    size_t bytes;
  } params{address, bytes};
  ApiCall call(kCall_cuMemAlloc_v2, "cuMemAlloc_v2", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Allocate(address, bytes));
}

// Waits for the context, as the real call does.
SIMGPU_EXPORT Result cuMemFree_v2(uint64_t address) {
  const struct {
    uint64_t address;
  } params{address};
  ApiCall call(kCall_cuMemFree_v2, "cuMemFree_v2", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (address != 0) WaitUntil(TailNs(*CurrentContext()));
  return call.Return(Free(address));
}

SIMGPU_EXPORT Result cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream) {
  const struct {
    uint64_t* address;
    size_t bytes;
    void* stream;
  } params{address, bytes, stream};
  ApiCall call(kCall_cuMemAllocAsync, "cuMemAllocAsync", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Allocate(address, bytes));
}

// Frees the bytes at once: the program could reuse them on the same stream.
SIMGPU_EXPORT Result cuMemFreeAsync(uint64_t address, void* stream) {
  const struct {
    uint64_t address;
    void* stream;
  } params{address, stream};
  ApiCall call(kCall_cuMemFreeAsync, "cuMemFreeAsync", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : Free(address));
}

SIMGPU_EXPORT Result cuMemAllocHost_v2(void** pointer, size_t bytes) {
  const struct {
    void** pointer;
    size_t bytes;
  } params{pointer, bytes};
  ApiCall call(kCall_cuMemAllocHost_v2, "cuMemAllocHost_v2", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : AllocateHost(pointer, bytes));
}

SIMGPU_EXPORT Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const struct {
    void** pointer;
    size_t bytes;
    unsigned flags;
  } params{pointer, bytes, flags};
  ApiCall call(kCall_cuMemHostAlloc, "cuMemHostAlloc", &params);
  const Result result = ReadyWithContext();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : AllocateHost(pointer, bytes));
}

SIMGPU_EXPORT Result cuMemFreeHost(void* pointer) {
  const struct {
    void* pointer;
  } params{pointer};
  ApiCall call(kCall_cuMemFreeHost, "cuMemFreeHost", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  const size_t bytes = Unpin(pointer);
  if (bytes == 0) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  ::munmap(pointer, bytes);
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  const struct {
    void* pointer;
    size_t bytes;
    unsigned flags;
  } params{pointer, bytes, flags};
  ApiCall call(kCall_cuMemHostRegister_v2, "cuMemHostRegister_v2", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (pointer == nullptr || bytes == 0) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  driver.pinned[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuMemHostUnregister(void* pointer) {
  const struct {
    void* pointer;
  } params{pointer};
  ApiCall call(kCall_cuMemHostUnregister, "cuMemHostUnregister", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  return call.Return(Unpin(pointer) == 0 ? GPUSONDE_CU_ERROR_INVALID_VALUE : GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuPointerGetAttribute(void* data, int attribute, uint64_t pointer) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (data == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (attribute != GPUSONDE_CU_POINTER_MEMORY_TYPE) return GPUSONDE_CU_ERROR_NOT_SUPPORTED;
  const uint8_t kind = Classify(pointer, pointer).source_kind;
  if (kind == GPUSONDE_CUPTI_MEMORY_PAGEABLE) return GPUSONDE_CU_ERROR_INVALID_VALUE;  // not a CUDA address
  const uint32_t type =
      kind == GPUSONDE_CUPTI_MEMORY_DEVICE ? GPUSONDE_CU_MEMORYTYPE_DEVICE : GPUSONDE_CU_MEMORYTYPE_HOST;
  std::memcpy(data, &type, sizeof type);
  return GPUSONDE_CU_SUCCESS;
}
