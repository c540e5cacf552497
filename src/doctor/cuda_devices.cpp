// SPDX-License-Identifier: Apache-2.0
#include "doctor/cuda_devices.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "base/utf8.h"
#include "doctor/in_child.h"

namespace gpusonde::doctor {
namespace {

constexpr char kCudaFine = '+';
constexpr char kCudaFailed = '-';
constexpr int kMaxDevices = 64;

template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

std::string Failed(void* driver, std::string_view call, int result) {
  const char* text = nullptr;
  if (auto* explain = Find<int(int, const char**)>(driver, "cuGetErrorString"); explain != nullptr)
    explain(result, &text);
  return kCudaFailed +
         fmt::format("{} failed: {} ({})", call, text == nullptr ? "unknown error" : ToUtf8(text), result);
}

std::string AskCuda() {
  // Don't start an injected tool in the probe.
  ::unsetenv("CUDA_INJECTION64_PATH");
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return kCudaFailed + std::string(::dlerror());
  auto* init = Find<int(unsigned)>(driver, "cuInit");
  auto* get_version = Find<int(int*)>(driver, "cuDriverGetVersion");
  auto* get_count = Find<int(int*)>(driver, "cuDeviceGetCount");
  auto* get_device = Find<int(int*, int)>(driver, "cuDeviceGet");
  auto* get_name = Find<int(char*, int, int)>(driver, "cuDeviceGetName");
  if (init == nullptr || get_version == nullptr || get_count == nullptr || get_device == nullptr ||
      get_name == nullptr)
    return kCudaFailed + std::string("libcuda.so.1 is not NVIDIA's driver library");
  if (const int result = init(0); result != 0) return Failed(driver, "cuInit", result);
  int version = 0;
  int count = 0;
  if (const int result = get_version(&version); result != 0)
    return Failed(driver, "cuDriverGetVersion", result);
  if (const int result = get_count(&count); result != 0) return Failed(driver, "cuDeviceGetCount", result);
  std::vector<std::string> names;
  for (int i = 0; i < std::min(count, kMaxDevices); ++i) {
    int device = 0;
    std::array<char, 256> name{};
    if (get_device(&device, i) == 0 && get_name(name.data(), name.size() - 1, device) == 0)
      names.push_back(ToUtf8(name.data()));
  }
  if (names.empty()) return kCudaFailed + std::string("CUDA sees no device");
  return kCudaFine +
         fmt::format("CUDA {}.{} on {}", version / 1000, version % 1000 / 10, fmt::join(names, ", "));
}

}  // namespace

Result<std::string> StartCuda() {
  ASSIGN_OR_RETURN(const std::string answer, InChild(AskCuda));
  if (answer.empty()) return Fail(ErrorCode::kUnavailable, "no response");
  if (answer.front() != kCudaFine) return Fail(ErrorCode::kUnavailable, answer.substr(1));
  return answer.substr(1);
}

}  // namespace gpusonde::doctor
