// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler, and anything else that begins with a bracket.
#include "analyze_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AnalyzeBytes(data, size);
  return 0;
}
