// SPDX-License-Identifier: Apache-2.0
// Traces of any format, read in detail: the rows that `gpusonde import` stores.
#include "convert_file.h"
#include "fuzzed_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static FuzzedFile file;
  file.Fill({data, size});
  ConvertFile(file.path());
  return 0;
}
