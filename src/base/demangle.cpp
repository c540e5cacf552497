// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <cxxabi.h>
#define HAVE_DECL_BASENAME 1  // or libiberty.h declares the C library's in another way
#include <libiberty/demangle.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace gpusonde {
namespace {

// The recursion and output of the demanglers grow with hostile names; real ones are shorter.
constexpr size_t kMaxMangledBytes = 4096;
constexpr size_t kMaxRustBytes = 16 << 10;

struct TooLong {};

// Rust names refer back to their own parts, so that 200 bytes can stand for gigabytes.
void AppendPart(const char* part, size_t length, void* name) {
  std::string& whole = *static_cast<std::string*>(name);
  if (whole.size() + length > kMaxRustBytes) throw TooLong{};
  whole.append(part, length);
}

// A name of either of Rust's schemes; nullopt for any other.
std::optional<std::string> DemangleRust(const std::string& name) {
  std::string whole;
  try {
    if (rust_demangle_callback(name.c_str(), DMGL_NO_OPTS, AppendPart, &whole) == 0) return std::nullopt;
  } catch (const TooLong&) {
    return std::nullopt;
  }
  return whole;
}

}  // namespace

std::string Demangle(const std::string& name) {
  const bool may_be_rust = name.starts_with("_R") || name.starts_with("_ZN");
  if (!(may_be_rust || name.starts_with("_Z")) || name.size() > kMaxMangledBytes) return name;
  constexpr std::string_view kPlt = "@plt";
  if (name.ends_with(kPlt)) return Demangle(name.substr(0, name.size() - kPlt.size())) + std::string(kPlt);
  // Rust's older scheme looks like C++ with a hash at the end.
  if (may_be_rust)
    if (std::optional<std::string> rust = DemangleRust(name); rust.has_value()) return *std::move(rust);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace gpusonde
