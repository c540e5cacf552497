// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simgpu/cuda/driver.h"

namespace simgpu::cuda {

// Takes a launch's arguments; how long it will run comes from what its module's text says (ptx.h).
// Errors: INVALID_HANDLE for what is no function, INVALID_VALUE for impossible shapes and durations.
Result MakeLaunch(Launch& launch, void* function, const uint32_t (&grid)[3], const uint32_t (&block)[3],
                  uint32_t shared_bytes, void** params, void** extra);

}  // namespace simgpu::cuda
