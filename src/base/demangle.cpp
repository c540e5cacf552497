// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace gpusonde {

std::string Demangle(const std::string& name) {
  // The demangler's recursion and output grow with hostile names; real ones are shorter.
  constexpr size_t kMaxMangledBytes = 4096;
  if (!name.starts_with("_Z") || name.size() > kMaxMangledBytes) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace gpusonde
