// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/python_layout.h"

namespace gpusonde::symbols {

// A CPython interpreter in an ELF file: libpython, or a program that has it inside. Addresses are the file's
// own.
struct PythonInterpreter {
  struct Range {
    uint64_t start = 0, end = 0;
  };

  const PythonLayout* layout = nullptr;
  uint64_t runtime = 0;           // _PyRuntime
  uint64_t code_type = 0;         // PyCode_Type; 0 if the file has no symbol for it
  std::vector<Range> evaluators;  // the code of _PyEval_EvalFrameDefault, whose frames run Python functions
  // What to add to an offset in the file to have its address, for offsets in the segment of the evaluators.
  uint64_t address_minus_offset = 0;

  bool IsEvaluator(uint64_t address) const;
};

// Looks into the file's symbols; nothing when there is no interpreter in it. Errors: kCorrupt for what is no
// 64-bit ELF file, kUnsupported for an interpreter whose frames we can't read (before 3.9, after 3.13,
// free-threaded): the message, with `name`, says which.
Result<std::optional<PythonInterpreter>> FindPythonInterpreter(int fd, const std::string& name);

// What that found, for another process, and the same there. Errors: kCorrupt.
std::string PackPython(const std::optional<PythonInterpreter>& found);
Result<std::optional<PythonInterpreter>> UnpackPython(std::string_view bytes);

}  // namespace gpusonde::symbols
