// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string>

#include "doctor/cuda_devices.h"
#include "doctor/in_child.h"
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {
namespace {

FoundLibrary FindCupti() {
  FoundLibrary found =
      FindLibrary({"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                   "/usr/local/cuda/lib64/libcupti.so"},
                  "cuptiActivityRegisterCallbacks");
  const char* home = std::getenv("CUDA_HOME");
  if (!found.path.empty() || home == nullptr) return found;
  const std::string folder = home;
  return FindLibrary(
      {(folder + "/extras/CUPTI/lib64/libcupti.so").c_str(), (folder + "/lib64/libcupti.so").c_str()},
      "cuptiActivityRegisterCallbacks");
}

// The API version, or 0 when CUPTI doesn't report one.
uint32_t VersionOf(const std::string& path) {
  const Result<std::string> answer = InChild([&] {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto* get = library == nullptr
                    ? nullptr
                    : reinterpret_cast<int32_t (*)(uint32_t*)>(::dlsym(library, "cuptiGetVersion"));
    uint32_t version = 0;
    return get != nullptr && get(&version) == 0 ? std::to_string(version) : std::string();
  });
  uint32_t version = 0;
  if (answer.has_value()) std::from_chars(answer->data(), answer->data() + answer->size(), version);
  return version;
}

}  // namespace

// A profiled program loads its own CUPTI; this probe finds out whether the machine has one where CUDA
// installs it.
Finding ProbeCupti(const Settings&) {
  const FoundLibrary cupti = FindCupti();
  if (cupti.path.empty())
    return Fails(
        "CUPTI 12 or 13 does not load: " + cupti.error,
        "install CUDA's CUPTI, or add its folder to LD_LIBRARY_PATH; programs that bring their own CUPTI "
        "need neither of these");
  const Result<std::string> cuda = StartCuda();
  return Works(fmt::format("CUPTI is {} (API version {}), for {}", cupti.path, VersionOf(cupti.path),
                           cuda.has_value() ? *cuda : "no working device"));
}

}  // namespace gpusonde::doctor
