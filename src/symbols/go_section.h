// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "symbols/elf_image.h"
#include "symbols/go_table.h"

namespace gpusonde::symbols {

// A Go program's table of functions, and where in the file it begins.
struct GoSection {
  std::vector<std::byte> bytes;  // that the table is a view of
  GoTable table;
  uint64_t file_offset = 0;
};

// Nothing for a file that isn't a Go program's, or has its table where no section says so
// (position-independent ones that another linker made). Errors: those of ElfImage::Bytes.
Result<std::optional<GoSection>> FindGoSection(ElfImage& image);

}  // namespace gpusonde::symbols
