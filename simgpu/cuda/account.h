// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Exported by libcuda.so.1 in addition to the driver API: what a device did for this process, exact to the
// nanosecond, as ground truth for profiler tests. Includes all submitted operations, even those that have yet
// to run.
struct SimgpuAccount {
  int64_t kernels;
  int64_t kernel_ns;
  int64_t copies;
  int64_t copy_ns;
  int64_t copy_bytes;
  int64_t memsets;
  int64_t memset_ns;
};

// Returns a CUresult: 0, 3 before cuInit, 101 for no such device or one that this process never used.
extern "C" int32_t simgpuAccount(uint32_t device, SimgpuAccount* account);
