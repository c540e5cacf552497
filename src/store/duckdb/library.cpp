// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/program_file.h"

namespace gpusonde::store::duckdb {
namespace {

constexpr std::string_view kFileName = "libduckdb.so";

std::vector<std::string> Candidates() {
  if (const char* chosen = std::getenv("GPUSONDE_DUCKDB"); chosen != nullptr && *chosen != '\0')
    return {chosen};
  std::vector<std::string> candidates;
  // Where it is installed with this program, and where `make setup` puts it beside the build.
  if (const Result<std::string> installed = InstallFolder(); installed.has_value())
    for (const std::string_view place : {"/lib/", "/../deps/duckdb/"})
      candidates.push_back(fmt::format("{}{}{}", *installed, place, kFileName));
  candidates.emplace_back(kFileName);
  return candidates;
}

template <class Function>
bool Find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

Result<Library> LoadFrom(void* handle, const std::string& path) {
  Library library;
#define GPUSONDE_DUCKDB_FIND(name)                                                                         \
  if (!Find(handle, "duckdb_" #name, library.name))                                                        \
    return Fail(ErrorCode::kUnavailable,                                                                   \
                fmt::format("{} lacks duckdb_{}: DuckDB 1.4 or later is needed; run `make setup`, or set " \
                            "GPUSONDE_DUCKDB to the path of a newer libduckdb.so",                         \
                            path, #name));
  GPUSONDE_DUCKDB_FUNCTIONS(GPUSONDE_DUCKDB_FIND)
#undef GPUSONDE_DUCKDB_FIND
  return library;
}

Result<Library> Load() {
  std::string tried;
  for (const std::string& path : Candidates()) {
    // Never closed: DuckDB's threads and thread-local state don't survive that.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return LoadFrom(handle, path);
    tried += fmt::format("\n  {}", ::dlerror());
  }
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("DuckDB, which holds recordings, was not found; run `make setup`, install libduckdb.so, or "
                  "set GPUSONDE_DUCKDB to its path. Tried:{}",
                  tried));
}

}  // namespace

Result<const Library*> LoadLibrary() {
  static const Result<Library> library = Load();
  if (!library.has_value()) return Fail(library.error());
  return &*library;
}

}  // namespace gpusonde::store::duckdb
