// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::symbols::PerfMap;
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const gpusonde::Fd file = gpusonde::MemoryFile({data, size});
  PerfMap map;
  map.Follow(file, kMaxBytes);
  if (map.bytes() > kMaxBytes) std::abort();
  for (uint64_t address = 0; address < 0x200; address += 8)
    if (const auto symbol = map.Find(address); symbol.has_value()) {
      if (address - symbol->address >= symbol->size) std::abort();
      if (text.find(symbol->name) == std::string_view::npos) std::abort();
    }
  return 0;
}
