// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "doctor/in_child.h"
#include "doctor/probes.h"
#include "sources/cupti/inject_library.h"

namespace gpusonde::doctor {
namespace {

// Empty if the library loads and has the entry points that CUDA's driver calls, else the reason. Loading
// starts nothing.
std::string TryToLoad(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2", "ncclProfiler_v6"})
    if (::dlsym(library, name) == nullptr) return fmt::format("it has no {}", name);
  return {};
}

}  // namespace

// The library that CUDA programs load for gpusonde.
Finding ProbeInject(const Settings&) {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  if (!library.has_value())
    return Fails("libgpusonde-inject.so is not in ../lib of this program's folder",
                 "install all of gpusonde: the program in bin/ and its libraries in lib/");
  const Result<std::string> loaded = InChild([&] { return TryToLoad(*library); });
  if (!loaded.has_value() || !loaded->empty())
    return Fails(
        fmt::format("{} does not load: {}", *library, loaded.has_value() ? *loaded : loaded.error().message),
        "it needs glibc 2.17 on x86-64; install it from the same package as this program");
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
    if (const char* taken = std::getenv(variable); taken != nullptr && *taken != '\0' && *library != taken)
      return Fails(fmt::format("{} is set to another tool: {}", variable, taken),
                   fmt::format("unset {} to record GPU work", variable));
  const char* plugin = std::getenv("NCCL_PROFILER_PLUGIN");
  const bool taken = plugin != nullptr && *plugin != '\0' && *library != plugin;
  return Works(fmt::format("{} loads, and CUDA_INJECTION64_PATH is free{}", *library,
                           taken ? fmt::format("; NCCL_PROFILER_PLUGIN is set to {}, so collectives are not "
                                               "recorded (docs/nccl.md says how both can be used)",
                                               plugin)
                                 : ""));
}

}  // namespace gpusonde::doctor
