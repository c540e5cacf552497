// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::symbols {

// Where a kernel address is: the module ("vmlinux" for the kernel itself), and the offset from the module's
// first symbol, which doesn't change when the kernel is loaded elsewhere (KASLR).
struct KernelSymbol {
  std::string_view module;
  std::string_view name;
  uint64_t module_offset = 0;
};

// The running kernel's function symbols, from /proc/kallsyms. Immutable, thread-safe.
class KernelSymbols {
 public:
  // Parses text in the format of /proc/kallsyms: "ffffffff81000000 T _stext [module]".
  // Errors: kPermissionDenied when the addresses are hidden (all zero: kernel.kptr_restrict), kCorrupt when
  // no line parses.
  static Result<KernelSymbols> Parse(std::string_view kallsyms);
  static Result<KernelSymbols> Load();

  std::optional<KernelSymbol> Find(uint64_t address) const;

 private:
  struct Entry {
    uint64_t address;
    uint32_t name;    // in names_, up to the NUL
    uint32_t module;  // in modules_
  };
  struct Module {
    std::string name;
    uint64_t first = UINT64_MAX;
  };
  std::vector<Entry> entries_;
  std::vector<Module> modules_;
  std::string names_;
};

}  // namespace gpusonde::symbols
