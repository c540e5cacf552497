// SPDX-License-Identifier: Apache-2.0
// Copies and sets.
#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

// Up to this size the driver buffers pageable memory at once, and the call returns before the copy is done.
constexpr size_t kStagedBytes = size_t{64} << 10;

// Copies on a stream. An asynchronous copy still blocks where pageable memory requires it, as CUDA documents
// ("API synchronization behavior").
Result Copy(Transfer transfer, size_t bytes, void* stream_handle, bool async) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(stream_handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (bytes > INT64_MAX) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (bytes == 0) return GPUSONDE_CU_SUCCESS;
  transfer.bytes = static_cast<int64_t>(bytes);
  transfer.async = async;
  if (stream->capture != nullptr) {
    if (!async) return GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CaptureNode(*stream, GPUSONDE_CU_GRAPH_NODE_MEMCPY).transfer = transfer;
    return GPUSONDE_CU_SUCCESS;
  }
  const Placed placed = SubmitTransfer(*stream, transfer, 0, {});
  const bool pageable = transfer.source_kind == GPUSONDE_CUPTI_MEMORY_PAGEABLE ||
                        transfer.target_kind == GPUSONDE_CUPTI_MEMORY_PAGEABLE;
  const bool to_host = transfer.copy_kind == GPUSONDE_CUPTI_MEMCPY_DTOH;
  const bool inside = transfer.copy_kind == GPUSONDE_CUPTI_MEMCPY_DTOD;
  const bool waits = async ? pageable && (to_host || bytes > kStagedBytes)
                           : !inside && (to_host || bytes > kStagedBytes || !pageable);
  if (waits) WaitUntil(placed.end_ns);
  return GPUSONDE_CU_SUCCESS;
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

Result Set(uint64_t target, uint32_t value, size_t bytes, void* stream_handle, bool async) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(stream_handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (bytes > INT64_MAX || target == 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (bytes == 0) return GPUSONDE_CU_SUCCESS;
  const Fill fill{.value = value, .bytes = static_cast<int64_t>(bytes), .async = async};
  if (stream->capture != nullptr)
    CaptureNode(*stream, GPUSONDE_CU_GRAPH_NODE_MEMSET).fill = fill;
  else
    SubmitFill(*stream, fill, 0, {});
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuMemcpyHtoD_v2(uint64_t target, const void* source, size_t bytes) {
  const struct {
    uint64_t target;
    const void* source;
    size_t bytes;
  } params{target, source, bytes};
  ApiCall call(kCall_cuMemcpyHtoD_v2, "cuMemcpyHtoD_v2", &params);
  return call.Return(Copy(Classify(target, Address(source)), bytes, nullptr, false));
}

SIMGPU_EXPORT Result cuMemcpyDtoH_v2(void* target, uint64_t source, size_t bytes) {
  const struct {
    void* target;
    uint64_t source;
    size_t bytes;
  } params{target, source, bytes};
  ApiCall call(kCall_cuMemcpyDtoH_v2, "cuMemcpyDtoH_v2", &params);
  return call.Return(Copy(Classify(Address(target), source), bytes, nullptr, false));
}

SIMGPU_EXPORT Result cuMemcpyDtoD_v2(uint64_t target, uint64_t source, size_t bytes) {
  const struct {
    uint64_t target;
    uint64_t source;
    size_t bytes;
  } params{target, source, bytes};
  ApiCall call(kCall_cuMemcpyDtoD_v2, "cuMemcpyDtoD_v2", &params);
  return call.Return(Copy(Classify(target, source), bytes, nullptr, false));
}

SIMGPU_EXPORT Result cuMemcpy(uint64_t target, uint64_t source, size_t bytes) {
  const struct {
    uint64_t target;
    uint64_t source;
    size_t bytes;
  } params{target, source, bytes};
  ApiCall call(kCall_cuMemcpy, "cuMemcpy", &params);
  return call.Return(Copy(Classify(target, source), bytes, nullptr, false));
}

SIMGPU_EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
  const struct {
    uint64_t target;
    const void* source;
    size_t bytes;
    void* stream;
  } params{target, source, bytes, stream};
  ApiCall call(kCall_cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2", &params);
  return call.Return(Copy(Classify(target, Address(source)), bytes, stream, true));
}

SIMGPU_EXPORT Result cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
  const struct {
    void* target;
    uint64_t source;
    size_t bytes;
    void* stream;
  } params{target, source, bytes, stream};
  ApiCall call(kCall_cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2", &params);
  return call.Return(Copy(Classify(Address(target), source), bytes, stream, true));
}

SIMGPU_EXPORT Result cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
  const struct {
    uint64_t target;
    uint64_t source;
    size_t bytes;
    void* stream;
  } params{target, source, bytes, stream};
  ApiCall call(kCall_cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync_v2", &params);
  return call.Return(Copy(Classify(target, source), bytes, stream, true));
}

SIMGPU_EXPORT Result cuMemcpyAsync(uint64_t target, uint64_t source, size_t bytes, void* stream) {
  const struct {
    uint64_t target;
    uint64_t source;
    size_t bytes;
    void* stream;
  } params{target, source, bytes, stream};
  ApiCall call(kCall_cuMemcpyAsync, "cuMemcpyAsync", &params);
  return call.Return(Copy(Classify(target, source), bytes, stream, true));
}

SIMGPU_EXPORT Result cuMemsetD8_v2(uint64_t target, unsigned char value, size_t count) {
  const struct {
    uint64_t target;
    unsigned char value;
    size_t count;
  } params{target, value, count};
  ApiCall call(kCall_cuMemsetD8_v2, "cuMemsetD8_v2", &params);
  return call.Return(Set(target, value, count, nullptr, false));
}

SIMGPU_EXPORT Result cuMemsetD32_v2(uint64_t target, unsigned value, size_t count) {
  const struct {
    uint64_t target;
    unsigned value;
    size_t count;
  } params{target, value, count};
  ApiCall call(kCall_cuMemsetD32_v2, "cuMemsetD32_v2", &params);
  return call.Return(Set(target, value, 4 * count, nullptr, false));
}

SIMGPU_EXPORT Result cuMemsetD8Async(uint64_t target, unsigned char value, size_t count, void* stream) {
  const struct {
    uint64_t target;
    unsigned char value;
    size_t count;
    void* stream;
  } params{target, value, count, stream};
  ApiCall call(kCall_cuMemsetD8Async, "cuMemsetD8Async", &params);
  return call.Return(Set(target, value, count, stream, true));
}

SIMGPU_EXPORT Result cuMemsetD32Async(uint64_t target, unsigned value, size_t count, void* stream) {
  const struct {
    uint64_t target;
    unsigned value;
    size_t count;
    void* stream;
  } params{target, value, count, stream};
  ApiCall call(kCall_cuMemsetD32Async, "cuMemsetD32Async", &params);
  return call.Return(Set(target, value, 4 * count, stream, true));
}
