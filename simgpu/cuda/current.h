// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "simgpu/cuda/objects.h"

namespace simgpu::cuda {

// This thread's stack of contexts; the top is the current one.
void SetCurrent(Context* context);
void PushCurrent(Context* context);
Context* PopCurrent();
// Removes a destroyed context from this thread's stack.
void ForgetCurrent(const Context* context);

}  // namespace simgpu::cuda
