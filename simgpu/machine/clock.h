// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace simgpu {

// CLOCK_MONOTONIC: the timeline of every simulated device, the same in all processes.
int64_t NowNs();

}  // namespace simgpu
