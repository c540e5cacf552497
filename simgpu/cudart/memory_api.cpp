// SPDX-License-Identifier: Apache-2.0
// Memory, copies and sets.
#include "simgpu/cudart/callback_ids.h"
#include "simgpu/cudart/runtime.h"

namespace simgpu::cudart {
namespace {

uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The runtime calls another function of the driver for each direction.
Error Copy(void* target, const void* source, size_t bytes, int kind) {
  switch (kind) {
    case GPUSONDE_CUDART_HOST_TO_DEVICE:
      return cuMemcpyHtoD_v2(Address(target), source, bytes);
    case GPUSONDE_CUDART_DEVICE_TO_HOST:
      return cuMemcpyDtoH_v2(target, Address(source), bytes);
    case GPUSONDE_CUDART_DEVICE_TO_DEVICE:
      return cuMemcpyDtoD_v2(Address(target), Address(source), bytes);
    case GPUSONDE_CUDART_HOST_TO_HOST:
    case GPUSONDE_CUDART_DEFAULT:
      return cuMemcpy(Address(target), Address(source), bytes);
    default:
      return GPUSONDE_CU_ERROR_INVALID_VALUE;
  }
}

Error CopyAsync(void* target, const void* source, size_t bytes, int kind, void* stream) {
  switch (kind) {
    case GPUSONDE_CUDART_HOST_TO_DEVICE:
      return cuMemcpyHtoDAsync_v2(Address(target), source, bytes, stream);
    case GPUSONDE_CUDART_DEVICE_TO_HOST:
      return cuMemcpyDtoHAsync_v2(target, Address(source), bytes, stream);
    case GPUSONDE_CUDART_DEVICE_TO_DEVICE:
      return cuMemcpyDtoDAsync_v2(Address(target), Address(source), bytes, stream);
    case GPUSONDE_CUDART_HOST_TO_HOST:
    case GPUSONDE_CUDART_DEFAULT:
      return cuMemcpyAsync(Address(target), Address(source), bytes, stream);
    default:
      return GPUSONDE_CU_ERROR_INVALID_VALUE;
  }
}

}  // namespace
}  // namespace simgpu::cudart

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Error cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const struct {
    size_t* free_bytes;
    size_t* total_bytes;
  } params{free_bytes, total_bytes};
  RuntimeCall call(kCall_cudaMemGetInfo_v3020, "cudaMemGetInfo", &params);
  return call.Run([&]() -> Error { return cuMemGetInfo_v2(free_bytes, total_bytes); });
}

SIMGPU_EXPORT Error cudaMalloc(void** pointer, size_t bytes) {
  const struct {
    void** pointer;
    size_t bytes;
  } params{pointer, bytes};
  RuntimeCall call(kCall_cudaMalloc_v3020, "cudaMalloc", &params);
  return call.Run([&]() -> Error { return cuMemAlloc_v2(reinterpret_cast<uint64_t*>(pointer), bytes); });
}

SIMGPU_EXPORT Error cudaFree(void* pointer) {
  const struct {
    void* pointer;
  } params{pointer};
  RuntimeCall call(kCall_cudaFree_v3020, "cudaFree", &params);
  return call.Run([&]() -> Error { return cuMemFree_v2(Address(pointer)); });
}

SIMGPU_EXPORT Error cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  const struct {
    void** pointer;
    size_t bytes;
    void* stream;
  } params{pointer, bytes, stream};
  RuntimeCall call(kCall_cudaMallocAsync_v11020, "cudaMallocAsync", &params);
  return call.Run(
      [&]() -> Error { return cuMemAllocAsync(reinterpret_cast<uint64_t*>(pointer), bytes, stream); });
}

SIMGPU_EXPORT Error cudaFreeAsync(void* pointer, void* stream) {
  const struct {
    void* pointer;
    void* stream;
  } params{pointer, stream};
  RuntimeCall call(kCall_cudaFreeAsync_v11020, "cudaFreeAsync", &params);
  return call.Run([&]() -> Error { return cuMemFreeAsync(Address(pointer), stream); });
}

SIMGPU_EXPORT Error cudaMallocHost(void** pointer, size_t bytes) {
  const struct {
    void** pointer;
    size_t bytes;
  } params{pointer, bytes};
  RuntimeCall call(kCall_cudaMallocHost_v3020, "cudaMallocHost", &params);
  return call.Run([&]() -> Error { return cuMemAllocHost_v2(pointer, bytes); });
}

SIMGPU_EXPORT Error cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const struct {
    void** pointer;
    size_t bytes;
    unsigned flags;
  } params{pointer, bytes, flags};
  RuntimeCall call(kCall_cudaHostAlloc_v3020, "cudaHostAlloc", &params);
  return call.Run([&]() -> Error { return cuMemHostAlloc(pointer, bytes, flags); });
}

SIMGPU_EXPORT Error cudaFreeHost(void* pointer) {
  const struct {
    void* pointer;
  } params{pointer};
  RuntimeCall call(kCall_cudaFreeHost_v3020, "cudaFreeHost", &params);
  return call.Run([&]() -> Error { return cuMemFreeHost(pointer); });
}

SIMGPU_EXPORT Error cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  const struct {
    void* pointer;
    size_t bytes;
    unsigned flags;
  } params{pointer, bytes, flags};
  RuntimeCall call(kCall_cudaHostRegister_v4000, "cudaHostRegister", &params);
  return call.Run([&]() -> Error { return cuMemHostRegister_v2(pointer, bytes, flags); });
}

SIMGPU_EXPORT Error cudaHostUnregister(void* pointer) {
  const struct {
    void* pointer;
  } params{pointer};
  RuntimeCall call(kCall_cudaHostUnregister_v4000, "cudaHostUnregister", &params);
  return call.Run([&]() -> Error { return cuMemHostUnregister(pointer); });
}

SIMGPU_EXPORT Error cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  const struct {
    void* target;
    const void* source;
    size_t bytes;
    int kind;
  } params{target, source, bytes, kind};
  RuntimeCall call(kCall_cudaMemcpy_v3020, "cudaMemcpy", &params);
  return call.Run([&]() -> Error { return Copy(target, source, bytes, kind); });
}

SIMGPU_EXPORT Error cudaMemcpyAsync(void* target, const void* source, size_t bytes, int kind, void* stream) {
  const struct {
    void* target;
    const void* source;
    size_t bytes;
    int kind;
    void* stream;
  } params{target, source, bytes, kind, stream};
  RuntimeCall call(kCall_cudaMemcpyAsync_v3020, "cudaMemcpyAsync", &params);
  return call.Run([&]() -> Error { return CopyAsync(target, source, bytes, kind, stream); });
}

SIMGPU_EXPORT Error cudaMemset(void* target, int value, size_t bytes) {
  const struct {
    void* target;
    int value;
    size_t bytes;
  } params{target, value, bytes};
  RuntimeCall call(kCall_cudaMemset_v3020, "cudaMemset", &params);
  return call.Run(
      [&]() -> Error { return cuMemsetD8_v2(Address(target), static_cast<unsigned char>(value), bytes); });
}

SIMGPU_EXPORT Error cudaMemsetAsync(void* target, int value, size_t bytes, void* stream) {
  const struct {
    void* target;
    int value;
    size_t bytes;
    void* stream;
  } params{target, value, bytes, stream};
  RuntimeCall call(kCall_cudaMemsetAsync_v3020, "cudaMemsetAsync", &params);
  return call.Run([&]() -> Error {
    return cuMemsetD8Async(Address(target), static_cast<unsigned char>(value), bytes, stream);
  });
}
