// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simgpu/cuda/driver.h"

namespace simgpu::cuda {

// Reads a launch's arguments; its duration follows from the module's PTX text (ptx.h). Errors: INVALID_HANDLE
// if the handle is not a function, INVALID_VALUE for impossible shapes and durations.
Result MakeLaunch(Launch& launch, void* function, const uint32_t (&grid)[3], const uint32_t (&block)[3],
                  uint32_t shared_bytes, void** params, void** extra);

}  // namespace simgpu::cuda
