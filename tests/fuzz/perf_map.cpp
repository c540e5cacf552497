// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::symbols::PerfMap;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const PerfMap map = PerfMap::Parse(text);
  for (uint64_t address = 0; address < 0x200; address += 8)
    if (const auto symbol = map.Find(address); symbol.has_value()) {
      if (address - symbol->address >= symbol->size) std::abort();
      if (text.find(symbol->name) == std::string::npos) std::abort();
    }
  return 0;
}
