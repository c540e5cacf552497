// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "symbols/elf_handle.h"
#include "symbols/go_table.h"

namespace gpusonde::symbols {

// A Go program's table of functions, and where in the file it begins.
struct GoSection {
  GoTable table;
  uint64_t file_offset = 0;
};

// Nothing for a file that isn't a Go program's, or has its table where no section says so
// (position-independent ones that another linker made). The table lives as long as `elf`.
std::optional<GoSection> FindGoSection(Elf* elf);

}  // namespace gpusonde::symbols
