// SPDX-License-Identifier: Apache-2.0
// A whole ELF file, read for build ids, symbols, debug links and unwind tables.
#include <cstdint>
#include <span>

#include "memory_file.h"
#include "symbols/debug_file.h"
#include "symbols/elf_file.h"
#include "symbols/python_interpreter.h"
#include "unwind/compile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::MemoryFile;
  namespace symbols = gpusonde::symbols;
  gpusonde::Fd fd = MemoryFile({data, size});
  (void)symbols::ReadBuildId(fd.get());
  (void)symbols::OpenDebugFile(fd.get(), "/x", {.roots = {"/nonexistent"}});
  (void)symbols::FindPythonInterpreter(fd.get(), "x");
  gpusonde::unwind::RuleSet rules;
  (void)gpusonde::unwind::CompileFile(fd.get(), "x", rules);
  const auto file = symbols::ElfFile::Load(std::move(fd), "x");
  if (!file.has_value()) return 0;
  for (uint64_t offset = 0; offset < size + 64; offset += 16) (void)file->Find(offset);
  return 0;
}
