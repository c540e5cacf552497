// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_layout.h"

#include <algorithm>
#include <iterator>

namespace gpusonde::symbols {
namespace {

// Each number is an offsetof() or sizeof() compiled against the headers that the version installs (Include/
// with Py_BUILD_CORE; python_layout_test says how), here of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0. The
// fields are in
//   _PyRuntimeState       internal/pycore_runtime.h
//   PyThreadState         cpython/pystate.h, with _PyCFrame in 3.11 and 3.12
//   frames                cpython/frameobject.h (3.9, 3.10), internal/pycore_frame.h
//   PyCodeObject          cpython/code.h
//   PyASCIIObject         cpython/unicodeobject.h
constexpr PythonLayout kLayouts[] = {
    {.version = 0x0309,
     .walk = {.tss_key = 584,
              .running_thread = 568,
              .thread_id = 176,
              .thread_frame = 24,
              .frame_pointer = 0,
              .frame_code = 32,
              .frame_previous = 24,
              .frame_instruction = 104,
              .frame_entry = 0,
              .code_first_line = 40,
              .code_name = 112,
              .code_file = 104,
              .code_bytecode = 0,
              .frame_bytes = 112,
              .indirect = 0,
              .entry = GPUSONDE_ENTRY_EVERY,
              .instruction_shift = 0},
     .code_qualified_name = 0,
     .code_lines = 120,
     .lines = PythonLineTable::kLnotab,
     .ascii_text = 48,
     .compact_text = 72},
    {.version = 0x030a,
     .walk = {.tss_key = 584,
              .running_thread = 568,
              .thread_id = 176,
              .thread_frame = 24,
              .frame_pointer = 0,
              .frame_code = 32,
              .frame_previous = 24,
              .frame_instruction = 96,
              .frame_entry = 0,
              .code_first_line = 40,
              .code_name = 112,
              .code_file = 104,
              .code_bytecode = 0,
              .frame_bytes = 104,
              .indirect = 0,
              .entry = GPUSONDE_ENTRY_EVERY,
              .instruction_shift = 1},
     .code_qualified_name = 0,
     .code_lines = 120,
     .lines = PythonLineTable::kRanges,
     .ascii_text = 48,
     .compact_text = 72},
    {.version = 0x030b,
     .walk = {.tss_key = 592,
              .running_thread = 576,
              .thread_id = 152,
              .thread_frame = 56,
              .frame_pointer = 8,
              .frame_code = 32,
              .frame_previous = 48,
              .frame_instruction = 56,
              .frame_entry = 68,
              .code_first_line = 72,
              .code_name = 120,
              .code_file = 112,
              .code_bytecode = 184,
              .frame_bytes = 72,
              .indirect = 1,
              .entry = GPUSONDE_ENTRY_FLAG,
              .instruction_shift = 0},
     .code_qualified_name = 128,
     .code_lines = 136,
     .lines = PythonLineTable::kLocations,
     .ascii_text = 48,
     .compact_text = 72},
    {.version = 0x030c,
     .walk = {.tss_key = 1544,
              .running_thread = 0,
              .thread_id = 136,
              .thread_frame = 56,
              .frame_pointer = 0,
              .frame_code = 0,
              .frame_previous = 8,
              .frame_instruction = 56,
              .frame_entry = 70,
              .code_first_line = 68,
              .code_name = 120,
              .code_file = 112,
              .code_bytecode = 192,
              .frame_bytes = 72,
              .indirect = 1,
              .entry = GPUSONDE_ENTRY_BY_SHIM,
              .instruction_shift = 0},
     .code_qualified_name = 128,
     .code_lines = 136,
     .lines = PythonLineTable::kLocations,
     .ascii_text = 40,
     .compact_text = 56},
    {.version = 0x030d,
     .walk = {.tss_key = 2160,
              .running_thread = 0,
              .thread_id = 152,
              .thread_frame = 72,
              .frame_pointer = 0,
              .frame_code = 0,
              .frame_previous = 8,
              .frame_instruction = 56,
              .frame_entry = 70,
              .code_first_line = 68,
              .code_name = 120,
              .code_file = 112,
              .code_bytecode = 200,
              .frame_bytes = 72,
              .indirect = 0,
              .entry = GPUSONDE_ENTRY_BY_SHIM,
              .instruction_shift = 0},
     .code_qualified_name = 128,
     .code_lines = 136,
     .lines = PythonLineTable::kLocations,
     .ascii_text = 40,
     .compact_text = 56},
};

}  // namespace

const PythonLayout* FindPythonLayout(uint32_t version) {
  const auto found = std::ranges::find(kLayouts, version, &PythonLayout::version);
  return found == std::end(kLayouts) ? nullptr : found;
}

}  // namespace gpusonde::symbols
