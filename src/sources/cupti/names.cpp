// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/names.h"

#include <algorithm>

#include "wire/gpu_event.h"
#include "wire/nvidia/cupti.h"
#include "wire/nvidia/cupti_callbacks.h"

namespace gpusonde::cupti {
namespace {

struct NamedCall {
  uint32_t id;
  std::string_view name;
};

// cudaMemcpyAsync_ptsz_v7000 -> cudaMemcpyAsync; __cudaLaunchKernel_v13000 -> cudaLaunchKernel;
// cuMemcpyHtoD_v2 -> cuMemcpyHtoD.
constexpr std::string_view Plain(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  return name.substr(0, name.find('_'));
}

#define NAMED_CALL(name, id, what) NamedCall{id, Plain(#name)},
constexpr NamedCall kRuntimeCalls[] = {GPUSONDE_CUPTI_RUNTIME_CALLS(NAMED_CALL)};
constexpr NamedCall kDriverCalls[] = {GPUSONDE_CUPTI_DRIVER_CALLS(NAMED_CALL)};
#undef NAMED_CALL

}  // namespace

std::string_view CopyKindName(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_CUPTI_MEMCPY_HTOD:
    case GPUSONDE_CUPTI_MEMCPY_HTOA:
      return "htod";
    case GPUSONDE_CUPTI_MEMCPY_DTOH:
    case GPUSONDE_CUPTI_MEMCPY_ATOH:
      return "dtoh";
    case GPUSONDE_CUPTI_MEMCPY_DTOD:
    case GPUSONDE_CUPTI_MEMCPY_ATOA:
    case GPUSONDE_CUPTI_MEMCPY_ATOD:
    case GPUSONDE_CUPTI_MEMCPY_DTOA:
      return "dtod";
    case GPUSONDE_CUPTI_MEMCPY_PTOP:
      return "ptop";
    case GPUSONDE_CUPTI_MEMCPY_HTOH:
      return "htoh";
    default:
      return "unknown";
  }
}

std::string_view MemoryKindName(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_CUPTI_MEMORY_PAGEABLE:
      return "pageable";
    case GPUSONDE_CUPTI_MEMORY_PINNED:
      return "pinned";
    case GPUSONDE_CUPTI_MEMORY_DEVICE:
    case GPUSONDE_CUPTI_MEMORY_ARRAY:
    case GPUSONDE_CUPTI_MEMORY_DEVICE_STATIC:
      return "device";
    case GPUSONDE_CUPTI_MEMORY_MANAGED:
    case GPUSONDE_CUPTI_MEMORY_MANAGED_STATIC:
      return "managed";
    default:
      return "unknown";
  }
}

std::string_view SyncKindName(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_CUPTI_SYNC_EVENT:
      return "event";
    case GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT:
      return "stream_wait";
    case GPUSONDE_CUPTI_SYNC_STREAM:
      return "stream";
    case GPUSONDE_CUPTI_SYNC_CONTEXT:
      return "context";
    default:
      return "unknown";
  }
}

std::string_view RangeKindName(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_GPU_RANGE_PUSH_POP:
      return "nvtx_push_pop";
    case GPUSONDE_GPU_RANGE_START_END:
      return "nvtx_start_end";
    default:
      return {};
  }
}

std::string_view CallName(bool runtime, uint32_t callback_id) {
  const auto find = [callback_id](const auto& calls) -> std::string_view {
    const auto* found = std::ranges::find(calls, callback_id, &NamedCall::id);
    return found == std::end(calls) ? std::string_view() : found->name;
  };
  return runtime ? find(kRuntimeCalls) : find(kDriverCalls);
}

}  // namespace gpusonde::cupti
