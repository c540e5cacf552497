// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "simgpu/cuda/objects.h"

namespace simgpu::cuda {

// The stack of contexts that are current to this thread; its top is the current one.
void SetCurrent(Context* context);
void PushCurrent(Context* context);
Context* PopCurrent();
// A context is gone: this thread must not use it any more.
void ForgetCurrent(const Context* context);

}  // namespace simgpu::cuda
