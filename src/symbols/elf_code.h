// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "symbols/elf_image.h"

// Inside of this folder: what an ELF file says of its code beside its symbols.
namespace gpusonde::symbols {

// A stub of the procedure linkage table: it jumps to a function of another file, whose name is in this one.
struct PltStub {
  uint64_t address = 0;
  uint32_t size = 0;
  uint64_t name_position = 0;  // in the file
};

// By address. A stub is known by the slot of the global offset table that it jumps through, and the slot by
// its relocation, so that every layout is understood (.plt, .plt.sec, .plt.got, with and without endbr64).
// x86-64.
Result<std::vector<PltStub>> FindPltStubs(ElfImage& image);

// Where functions begin, by the search table of .eh_frame_hdr, ascending: that survives strip(1). Empty where
// there is none, or one that no linker writes.
Result<std::vector<uint32_t>> FindFunctionStarts(ElfImage& image);

// Addresses [begin, end) of a section with code.
struct CodeSection {
  uint64_t begin = 0;
  uint64_t end = 0;
};
std::vector<CodeSection> FindCodeSections(const ElfImage& image);

}  // namespace gpusonde::symbols
