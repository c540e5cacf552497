// SPDX-License-Identifier: Apache-2.0
#include "symbols/jit_dump.h"

#include <cstdint>
#include <cstdlib>

#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::symbols::JitDump;
  const gpusonde::Fd file = gpusonde::MemoryFile({data, size});
  constexpr size_t kMaxBytes = size_t{1} << 20;
  JitDump dump;
  dump.Follow(file, kMaxBytes);
  if (dump.bytes() > kMaxBytes) std::abort();
  if (dump.Follow(file, kMaxBytes)) std::abort();  // nothing was added
  for (uint64_t address = 0; address < 0x200; address += 8)
    if (const auto symbol = dump.Find(address); symbol.has_value())
      if (address - symbol->address >= symbol->size) std::abort();
  return 0;
}
