// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simgpu/cuda/driver_api.h"
#include "simgpu/cuda/tools.h"
#include "wire/nvidia/cuda.h"
#include "wire/nvidia/cudart.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cudart {

using Error = int32_t;  // cudaError_t

// Initialises the driver and makes a primary context current at the first call that needs one.
Error Start();
// Remembers a failure for cudaGetLastError.
Error Note(Error error);
Error TakeLastError(bool forget);

// The driver's function for a kernel handle or the address of a host stub; null for neither.
void* FunctionOf(const void* entry);
const char* SymbolOf(const void* entry);

// One call of the runtime API: its callbacks enclose those of the driver calls that work() makes.
class RuntimeCall {
 public:
  RuntimeCall(uint32_t callback_id, const char* function, const void* params, const char* symbol = nullptr);
  template <class Work>
  Error Run(Work work) {
    const Error started = Start();
    return Return(started != GPUSONDE_CU_SUCCESS ? started : work());
  }

 private:
  Error Return(Error error);

  bool entered_ = false;
  uint64_t correlation_data_ = 0;
  ApiEvent event_{};
};

}  // namespace simgpu::cudart
