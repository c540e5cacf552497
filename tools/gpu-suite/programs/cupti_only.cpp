// SPDX-License-Identifier: Apache-2.0
// A minimal CUPTI tool: subscribes to launches and copies and receives the records of kernels, copies and
// sets, like libgpusonde-inject.so, but ignores them. Loaded in its place (CUDA_INJECTION64_PATH), it shows
// the cost of CUPTI itself. GPU_SUITE_CUPTI is libcupti's path.
#include <dlfcn.h>
#include <stdlib.h>

#include "wire/nvidia/cupti.h"

namespace {

constexpr uint32_t kRuntimeLaunchKernel = 211;  // cudaLaunchKernel_v7000
constexpr uint32_t kDriverLaunchKernel = 307;   // cuLaunchKernel
constexpr uint32_t kKinds[] = {GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL, GPUSONDE_CUPTI_KIND_MEMCPY,
                               GPUSONDE_CUPTI_KIND_MEMSET};
constexpr size_t kBufferBytes = size_t{1} << 20;

void OnCall(void*, uint32_t, uint32_t, const void*) {}

void RequestBuffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(malloc(kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;
}

void CompleteBuffer(void*, uint32_t, uint8_t* buffer, size_t, size_t) { free(buffer); }

template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// Called by CUDA's driver (CUPTI's documentation, "Dynamic attach and injection").
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = getenv("GPU_SUITE_CUPTI");
  void* cupti = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
  if (cupti == nullptr) return 0;
  auto* subscribe = Find<gpusonde_cupti_subscribe_fn>(cupti, "cuptiSubscribe");
  auto* enable_callback = Find<gpusonde_cupti_enable_callback_fn>(cupti, "cuptiEnableCallback");
  auto* register_callbacks =
      Find<gpusonde_cupti_activity_register_callbacks_fn>(cupti, "cuptiActivityRegisterCallbacks");
  auto* enable = Find<gpusonde_cupti_activity_kind_fn>(cupti, "cuptiActivityEnable");
  if (subscribe == nullptr || enable_callback == nullptr || register_callbacks == nullptr ||
      enable == nullptr)
    return 0;
  gpusonde_cupti_subscriber_handle subscriber = nullptr;
  if (subscribe(&subscriber, OnCall, nullptr) != GPUSONDE_CUPTI_SUCCESS) return 0;
  register_callbacks(RequestBuffer, CompleteBuffer);
  for (const uint32_t kind : kKinds) enable(kind);
  enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_RUNTIME, kRuntimeLaunchKernel);
  enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, kDriverLaunchKernel);
  return 1;
}
