// SPDX-License-Identifier: Apache-2.0
#include "symbols/debuginfod.h"

#include <dlfcn.h>

#include <cstdlib>

#include "symbols/elf_file.h"

namespace gpusonde::symbols {
namespace {

// Of debuginfod.h, which Debian has in a package of its own.
using Begin = void* (*)();
using End = void (*)(void* client);
// A build id as hex text when its length is 0.
using FindDebugInfo = int (*)(void* client, const unsigned char* build_id, int bytes, char** path);

template <class Function>
Function Resolve(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

Result<Fd> FetchDebugFile(const std::string& build_id) {
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == '\0' || build_id.empty())
    return Fail(ErrorCode::kNotFound, "no debuginfod server is configured (DEBUGINFOD_URLS)");
  ::setenv("DEBUGINFOD_TIMEOUT", "10", 0);  // s without progress; its own default is 90
  // Loaded when it is first needed: it brings libcurl along.
  static void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Fail(ErrorCode::kUnsupported, "DEBUGINFOD_URLS is set, and libdebuginfod.so.1 is not installed");
  const auto begin = Resolve<Begin>(library, "debuginfod_begin");
  const auto end = Resolve<End>(library, "debuginfod_end");
  const auto find = Resolve<FindDebugInfo>(library, "debuginfod_find_debuginfo");
  if (begin == nullptr || end == nullptr || find == nullptr)
    return Fail(ErrorCode::kUnsupported, "libdebuginfod.so.1 lacks a function of debuginfod");
  void* client = begin();
  if (client == nullptr) return Fail(ErrorCode::kUnsupported, "libdebuginfod can't create a client");
  Fd fd(find(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, nullptr));
  end(client);
  if (!fd.valid())
    return Fail(ErrorCode::kNotFound, "no server has debug information for build id " + build_id);
  if (ReadBuildId(fd.get()).value_or("") != build_id)
    return Fail(ErrorCode::kCorrupt, "a debuginfod server answered with another build than " + build_id);
  return fd;
}

}  // namespace gpusonde::symbols
