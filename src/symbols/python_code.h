// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/process_memory.h"
#include "symbols/python_layout.h"

namespace gpusonde::symbols {

// A CPython code object. Immutable.
struct PythonCode {
  std::string name;  // qualified ("Loader.next_batch") from 3.11 on, before that the bare name
  std::string file;  // as the interpreter opened it, often relative for the main program
  int32_t first_line = 0;
  PythonLineTable line_format{};
  std::vector<std::byte> line_table;

  // The line of the instruction at this byte offset in the bytecode; 0 when it has none.
  int32_t LineOf(uint32_t instruction) const;
};

// Reads the code object at `address`. `code_type` is where that process has PyCode_Type (0: not known, not
// asked), and `check` what gpusonde_python_check() gave when a frame of it was seen: memory that now holds
// something else is kNotFound, never another function's name. Errors: kNotFound also when the memory can't be
// read, kCorrupt for a name or table that is no string or is implausibly long.
Result<PythonCode> ReadPythonCode(const Memory& memory, const PythonLayout& layout, uint64_t code_type,
                                  uint64_t address, uint32_t check);

}  // namespace gpusonde::symbols
