// SPDX-License-Identifier: Apache-2.0
// A whole ELF file, whose source lines are read. A crash only kills a disposable process
// (symbols/line_server.h), and most of the code is libdw's.
#include <cstdint>

#include "memory_file.h"
#include "symbols/dwarf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::symbols::DwarfFile;
  auto file = DwarfFile::OpenWith(gpusonde::MemoryFile({data, size}), gpusonde::Fd(), "x", {});
  if (!file.has_value()) return 0;
  for (uint64_t offset = 0; offset < size; offset += 7) (void)file->Find(offset);
  return 0;
}
