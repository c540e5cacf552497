// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/inject_library.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/fd.h"
#include "base/log.h"
#include "base/program_file.h"

namespace gpusonde::cupti {

std::optional<std::string> FindInjectLibrary() {
  const Result<std::string> installed = InstallFolder();
  if (!installed.has_value()) return std::nullopt;
  std::string library = fmt::format("{}/lib/{}", *installed, kLibraryName);
  std::error_code failed;
  if (!std::filesystem::is_regular_file(library, failed)) return std::nullopt;
  return library;
}

bool CudaDriverIsThere() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) ::dlclose(driver);
  return driver != nullptr;
}

std::vector<std::string> InjectEnvironment(const std::string& library) {
  std::vector<std::string> environment;
  // The CUDA driver reads the first (CUPTI's documentation, "Dynamic attach and injection"), NVTX the second,
  // NCCL the third.
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    const char* taken = std::getenv(name);
    if (taken == nullptr || *taken == '\0')
      environment.push_back(std::string(name) + "=" + library);
    else if (taken != library)
      LogWarn("{} is set to {}, so gpusonde does not profile what it would show{}", name, taken,
              std::string_view(name).starts_with("NCCL") ? " (docs/nccl.md says how both can)" : "");
  }
  return environment;
}

bool UsesCudaWithoutInjection(int32_t pid, std::span<const proc::MappedFile> files) {
  if (!proc::MapsFile(files, "libcuda.so") || proc::MapsFile(files, kLibraryName)) return false;
  const Result<std::string> environment = ReadFile(fmt::format("/proc/{}/environ", pid));
  return environment.has_value() && !environment->contains(kLibraryName);
}

}  // namespace gpusonde::cupti
