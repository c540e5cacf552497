// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbols/debug_file.h"

namespace gpusonde::symbols {

// One function at work at an instruction.
struct SourceFrame {
  std::string function;    // its linkage name, else its name in the source; empty when unknown
  std::string file;        // empty when unknown
  int32_t line = 0;        // of the instruction, or of the call to the function inlined there; 0: unknown
  int32_t first_line = 0;  // where the function is declared; 0: unknown

  bool operator==(const SourceFrame&) const = default;
};

// The lines and inlined functions of one ELF file, from its DWARF (versions 2 to 5; .debug_line and
// .debug_info), read by libdw. What was stripped comes from its debug file, and what several files share from
// the supplementary file that the debug file names (.gnu_debugaltlink).
//
// It maps the files, and libdw trusts much of what it reads: use it on untrusted files only in a process that
// may crash (symbols/line_server.h). Not thread-safe.
class DwarfFile {
 public:
  // `path` is the file's in each root of `places`. Errors: kCorrupt for what is no 64-bit ELF
  // file; kNotFound when there is no debug information for it.
  static Result<DwarfFile> Open(Fd fd, const std::string& path, const DebugPlaces& places);

  // The same with the debug file at hand.
  static Result<DwarfFile> OpenWith(Fd fd, Fd debug_file, const std::string& path, const DebugPlaces& places);

  // The functions at the byte at `file_offset`, innermost first; the last is the one that was called. Empty
  // when the debug information doesn't cover it.
  std::vector<SourceFrame> Find(uint64_t file_offset);

  DwarfFile(DwarfFile&&) noexcept;
  DwarfFile& operator=(DwarfFile&&) noexcept;
  ~DwarfFile();

 private:
  struct State;
  explicit DwarfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::symbols
