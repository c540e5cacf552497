// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace gpusonde {

std::string Demangle(const std::string& name) {
  // The demangler's recursion and output grow with hostile names; real ones are shorter.
  constexpr size_t kMaxMangledBytes = 4096;
  if (!name.starts_with("_Z") || name.size() > kMaxMangledBytes) return name;
  constexpr std::string_view kPlt = "@plt";
  if (name.ends_with(kPlt)) return Demangle(name.substr(0, name.size() - kPlt.size())) + std::string(kPlt);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace gpusonde
