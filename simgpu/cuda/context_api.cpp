// SPDX-License-Identifier: Apache-2.0
// Primary and other contexts.
#include <algorithm>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "simgpu/cuda/current.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

thread_local std::vector<Context*> context_stack;

void NotifyContext(uint32_t id, Context* context) {
  ResourceEvent event{};
  event.id = id;
  event.context = context;
  NotifyResource(event);
}

Result MakeContext(int device, bool primary, Context** made) {
  Driver& driver = TheDriver();
  if (device < 0 || device >= static_cast<int>(driver.machine->device_count()))
    return GPUSONDE_CU_ERROR_INVALID_DEVICE;
  const auto ordinal = static_cast<uint32_t>(device);
  const std::optional<uint32_t> slot = driver.machine->AttachSelf(ordinal);
  if (!slot.has_value()) return GPUSONDE_CU_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(driver.mutex);
  *made =
      driver.contexts.emplace_back(std::make_unique<Context>(driver.next_context++, ordinal, *slot)).get();
  if (primary) driver.primary[ordinal] = *made;
  return GPUSONDE_CU_SUCCESS;
}

// A context's memory stays allocated to its process until the process ends or frees it.
Result DestroyContext(Context* context) {
  if (context == nullptr) return GPUSONDE_CU_ERROR_INVALID_CONTEXT;
  Driver& driver = TheDriver();
  NotifyContext(GPUSONDE_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, context);
  WaitUntil(TailNs(*context));
  ForgetCurrent(context);
  const std::lock_guard lock(driver.mutex);
  if (driver.primary[context->device] == context) driver.primary[context->device] = nullptr;
  std::erase_if(driver.contexts, [&](const auto& owned) { return owned.get() == context; });
  return GPUSONDE_CU_SUCCESS;
}

Result Retain(void** context, int device) {
  Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Driver& driver = TheDriver();
  if (context == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (device < 0 || device >= static_cast<int>(driver.primary.size()))
    return GPUSONDE_CU_ERROR_INVALID_DEVICE;
  static std::mutex making;
  const std::lock_guard one_at_a_time(making);
  Context* primary = driver.primary[static_cast<size_t>(device)];
  if (primary == nullptr) {
    result = MakeContext(device, true, &primary);
    if (result != GPUSONDE_CU_SUCCESS) return result;
    NotifyContext(GPUSONDE_CUPTI_RESOURCE_CONTEXT_CREATED, primary);
  }
  ++primary->primary_uses;
  *context = primary;
  return GPUSONDE_CU_SUCCESS;
}

Result Release(int device) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Driver& driver = TheDriver();
  if (device < 0 || device >= static_cast<int>(driver.primary.size()))
    return GPUSONDE_CU_ERROR_INVALID_DEVICE;
  Context* primary = driver.primary[static_cast<size_t>(device)];
  if (primary == nullptr) return GPUSONDE_CU_ERROR_INVALID_CONTEXT;
  return --primary->primary_uses == 0 ? DestroyContext(primary) : GPUSONDE_CU_SUCCESS;
}

Result Create(void** context, int device) {
  Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (context == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Context* made = nullptr;
  result = MakeContext(device, false, &made);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  PushCurrent(made);
  NotifyContext(GPUSONDE_CUPTI_RESOURCE_CONTEXT_CREATED, made);
  *context = made;
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace

Context* CurrentContext() { return context_stack.empty() ? nullptr : context_stack.back(); }

void SetCurrent(Context* context) {
  if (!context_stack.empty()) context_stack.pop_back();
  if (context != nullptr) context_stack.push_back(context);
}

void PushCurrent(Context* context) { context_stack.push_back(context); }

Context* PopCurrent() {
  Context* context = CurrentContext();
  if (context != nullptr) context_stack.pop_back();
  return context;
}

void ForgetCurrent(const Context* context) { std::erase(context_stack, context); }

}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuDevicePrimaryCtxRetain(void** context, int device) {
  const struct {
    void** context;
    int device;
  } params{context, device};
  ApiCall call(kCall_cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", &params);
  return call.Return(Retain(context, device));
}

SIMGPU_EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
  const struct {
    int device;
  } params{device};
  ApiCall call(kCall_cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2", &params);
  return call.Return(Release(device));
}

SIMGPU_EXPORT Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Driver& driver = TheDriver();
  if (device < 0 || device >= static_cast<int>(driver.primary.size()))
    return GPUSONDE_CU_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = driver.primary[static_cast<size_t>(device)] != nullptr ? 1 : 0;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuDevicePrimaryCtxSetFlags_v2(int /*device*/, unsigned /*flags*/) { return Ready(); }

SIMGPU_EXPORT Result cuCtxCreate_v2(void** context, unsigned flags, int device) {
  const struct {
    void** context;
    unsigned flags;
    int device;
  } params{context, flags, device};
  ApiCall call(kCall_cuCtxCreate_v2, "cuCtxCreate_v2", &params);
  return call.Return(Create(context, device));
}

SIMGPU_EXPORT Result cuCtxCreate_v4(void** context, void* create_params, unsigned flags, int device) {
  const struct {
    void** context;
    void* create_params;
    unsigned flags;
    int device;
  } params{context, create_params, flags, device};
  ApiCall call(kCall_cuCtxCreate_v4, "cuCtxCreate_v4", &params);
  return call.Return(Create(context, device));
}

SIMGPU_EXPORT Result cuCtxDestroy_v2(void* context) {
  const struct {
    void* context;
  } params{context};
  ApiCall call(kCall_cuCtxDestroy_v2, "cuCtxDestroy_v2", &params);
  const Result result = Ready();
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : DestroyContext(As<Context>(context)));
}

SIMGPU_EXPORT Result cuCtxSetCurrent(void* context) {
  const struct {
    void* context;
  } params{context};
  ApiCall call(kCall_cuCtxSetCurrent, "cuCtxSetCurrent", &params);
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (context != nullptr && As<Context>(context) == nullptr)
    return call.Return(GPUSONDE_CU_ERROR_INVALID_CONTEXT);
  SetCurrent(As<Context>(context));
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuCtxGetCurrent(void** context) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (context == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *context = CurrentContext();
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuCtxPushCurrent_v2(void* context) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (As<Context>(context) == nullptr) return GPUSONDE_CU_ERROR_INVALID_CONTEXT;
  PushCurrent(As<Context>(context));
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuCtxPopCurrent_v2(void** context) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Context* popped = PopCurrent();
  if (context != nullptr) *context = popped;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuCtxGetDevice(int* device) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (device == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *device = static_cast<int>(CurrentContext()->device);
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuCtxGetId(void* context, unsigned long long* id) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Context* wanted = context == nullptr ? CurrentContext() : As<Context>(context);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *id = wanted->id;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuCtxSynchronize() {
  ApiCall call(kCall_cuCtxSynchronize, "cuCtxSynchronize", nullptr);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  Context& context = *CurrentContext();
  int64_t tail_ns = 0;
  {
    const std::lock_guard lock(TheDriver().mutex);
    tail_ns = TailNs(context);
  }
  Synchronize(context, nullptr, GPUSONDE_CUPTI_SYNC_CONTEXT, GPUSONDE_CUPTI_INVALID_ID, tail_ns);
  return call.Return(GPUSONDE_CU_SUCCESS);
}
