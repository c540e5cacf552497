// SPDX-License-Identifier: Apache-2.0
#include "simgpu/machine/clock.h"

#include <ctime>

namespace simgpu {

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace simgpu
