// SPDX-License-Identifier: Apache-2.0
// Entry points: for the CUDA driver (CUDA_INJECTION64_PATH) and for every NVTX instance
// (NVTX_INJECTION64_PATH).
#include "inject/control.h"
#include "inject/ranges.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Called by the driver once, within cuInit. 1 means success; the driver ignores failure.
EXPORTED int InitializeInjection(void);
int InitializeInjection(void) {
  gpusonde::inject::Start();
  return 1;
}

// Called by NVTX at the program's first NVTX call; 0 makes NVTX's functions do nothing from then on. Ranges
// are recorded only while the library is awake, which InitializeInjection starts.
EXPORTED int InitializeInjectionNvtx2(gpusonde_nvtx_get_export_table* get_export_table);
int InitializeInjectionNvtx2(gpusonde_nvtx_get_export_table* get_export_table) {
  return gpusonde::inject::AttachRanges(get_export_table) ? 1 : 0;
}
