// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <memory>
#include <string>

#include "base/result.h"

// Inside of this folder: libelf's handles. Everything that libelf returns may be null: files are hostile.
namespace gpusonde::symbols {

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

// Begins to read the 64-bit ELF file behind `fd`, which must outlive the handle. Errors: kCorrupt.
inline Result<ElfHandle> BeginElf(int fd, const std::string& name) {
  static const bool initialised = elf_version(EV_CURRENT) != EV_NONE;
  ElfHandle elf(initialised ? elf_begin(fd, ELF_C_READ, nullptr) : nullptr);
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF || gelf_getclass(elf.get()) != ELFCLASS64)
    return Fail(ErrorCode::kCorrupt, fmt::format("{} is not a 64-bit ELF file", name));
  return elf;
}

}  // namespace gpusonde::symbols
