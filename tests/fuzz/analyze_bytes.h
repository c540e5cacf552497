// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyze_file.h"
#include "fuzzed_file.h"

inline void AnalyzeBytes(const uint8_t* data, size_t size) {
  static FuzzedFile file;
  file.Fill({data, size});
  AnalyzeFile(file.path());
}
