// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/python.h"

namespace gpusonde::symbols {

// How a code object encodes the lines of its instructions.
enum class PythonLineTable : uint8_t {
  kLnotab,    // 3.9: Objects/lnotab_notes.txt of that version
  kRanges,    // 3.10: PEP 626, Objects/lnotab_notes.txt of that version
  kLocations  // 3.11+: Objects/locations.md
};

// Where things are in the memory of one minor version of CPython on x86-64 (release builds with a GIL).
struct PythonLayout {
  uint32_t version = 0;              // 0x030b for 3.11
  gpusonde_python_layout walk{};     // what kernel programs read
  uint16_t code_qualified_name = 0;  // PyCodeObject: co_qualname; 0 where there is none (before 3.11)
  uint16_t code_lines = 0;           // PyCodeObject: co_linetable (3.9: co_lnotab), of the form `lines`
  PythonLineTable lines{};
  uint16_t ascii_text = 0;    // sizeof(PyASCIIObject): the characters of an ASCII string
  uint16_t compact_text = 0;  // sizeof(PyCompactUnicodeObject): those of any other
};

// The layout of a version, 0x030b for 3.11; null for versions not known.
const PythonLayout* FindPythonLayout(uint32_t version);

}  // namespace gpusonde::symbols
