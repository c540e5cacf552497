// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems: SQLite files, whose pages are decoded directly.
#include "analyze_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AnalyzeBytes(data, size);
  return 0;
}
