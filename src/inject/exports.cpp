// SPDX-License-Identifier: Apache-2.0
// What others call: the CUDA driver (CUDA_INJECTION64_PATH) and every NVTX instance (NVTX_INJECTION64_PATH).
#include "inject/control.h"
#include "inject/ranges.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Called by the driver once, within cuInit. Whatever it returns, the program goes on; 1 is success.
EXPORTED int InitializeInjection(void);
int InitializeInjection(void) {
  gpusonde::inject::Start();
  return 1;
}

// Called by NVTX at the program's first NVTX call; 0 makes NVTX's functions do nothing from then on. Ranges
// are told only in awake periods, which InitializeInjection begins.
EXPORTED int InitializeInjectionNvtx2(gpusonde_nvtx_get_export_table* get_export_table);
int InitializeInjectionNvtx2(gpusonde_nvtx_get_export_table* get_export_table) {
  return gpusonde::inject::AttachRanges(get_export_table) ? 1 : 0;
}
