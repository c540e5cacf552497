// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "simgpu/cuda/driver.h"
#include "wire/nvidia/cuda.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cuda {

// The tool; null when there is none.
const ToolCallbacks* AttachedTool();
// The correlation id of the call that this thread is in; 0 outside of calls and without a tool.
uint32_t CorrelationId();
void NotifyResource(const ResourceEvent& event);

// One call into the driver API, from its entry to its exit. Costs two loads without a tool.
//
//   SIMGPU_EXPORT Result cuThing(int a) {
//     const struct { int a; } params{a};
//     ApiCall call(kCallCuThing, "cuThing", &params);
//     return call.Return(Thing(a));
//   }
class ApiCall {
 public:
  ApiCall(uint32_t callback_id, const char* function, const void* params, const char* symbol = nullptr) {
    if (AttachedTool() != nullptr) Enter(callback_id, function, params, symbol);
  }
  Result Return(Result result) {
    if (entered_) Leave(result);
    return result;
  }

 private:
  void Enter(uint32_t callback_id, const char* function, const void* params, const char* symbol);
  void Leave(Result result);

  bool entered_ = false;
  uint64_t correlation_data_;
  ApiEvent event_;
};

// SUCCESS when the driver can be used and, if a context is required, one is current.
Result Ready();
Result ReadyWithContext();

}  // namespace simgpu::cuda
