// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "simgpu/cuda/driver.h"
#include "wire/nvidia/cuda.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cuda {

// The listener, null when nobody listens.
const Listener* TheListener();
// The correlation id of the call that this thread is in; 0 outside and when nobody listens.
uint32_t CorrelationId();
void TellResource(const ResourceEvent& event);

// One call into the driver API, from its entry to its exit. Costs two loads when nobody listens.
//
//   SIMGPU_EXPORT Result cuThing(int a) {
//     const struct { int a; } params{a};
//     ApiCall call(kCallCuThing, "cuThing", &params);
//     return call.Return(Thing(a));
//   }
class ApiCall {
 public:
  ApiCall(uint32_t callback_id, const char* function, const void* params, const char* symbol = nullptr) {
    if (TheListener() != nullptr) Enter(callback_id, function, params, symbol);
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

// SUCCESS when the driver can be used; with a context wanted, only if one is current.
Result Ready();
Result ReadyWithContext();

}  // namespace simgpu::cuda
