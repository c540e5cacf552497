// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What libcuda.so.1 exports beside the driver API: what a device did for this process, exact to the
// nanosecond. Tests compare with it what a profiler counted. All operations that were submitted count, those
// that have yet to run too.
struct SimgpuAccount {
  int64_t kernels;
  int64_t kernel_ns;
  int64_t copies;
  int64_t copy_ns;
  int64_t copy_bytes;
  int64_t memsets;
  int64_t memset_ns;
};

// 0, or the CUresult that says why not: 3 before cuInit, 101 for no such device or one that this process
// never used.
extern "C" int32_t simgpuAccount(uint32_t device, SimgpuAccount* account);
