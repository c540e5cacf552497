// SPDX-License-Identifier: Apache-2.0
// Names of results, and addresses of functions.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "simgpu/cuda/api_call.h"

namespace simgpu::cuda {
namespace {

struct Named {
  Result result;
  const char* name;
  const char* text;
};

constexpr std::array kResults = {
    Named{GPUSONDE_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    Named{GPUSONDE_CU_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    Named{GPUSONDE_CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    Named{GPUSONDE_CU_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    Named{GPUSONDE_CU_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    Named{GPUSONDE_CU_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    Named{GPUSONDE_CU_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    Named{GPUSONDE_CU_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    Named{GPUSONDE_CU_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    Named{GPUSONDE_CU_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    Named{GPUSONDE_CU_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
          "the operation cannot be performed in the present state"},
    Named{GPUSONDE_CU_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    Named{GPUSONDE_CU_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    Named{GPUSONDE_CU_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    Named{GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
          "operation not permitted when stream is capturing"},
    Named{GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
          "capture was not ended in the same stream as it began"},
};

Result Describe(Result result, const char** text, const char* Named::* member) {
  if (text == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  for (const Named& named : kResults) {
    if (named.result != result) continue;
    *text = named.*member;
    return GPUSONDE_CU_SUCCESS;
  }
  *text = nullptr;
  return GPUSONDE_CU_ERROR_INVALID_VALUE;
}

// A name without a version means the newest function that a caller of this CUDA version can know; all of ours
// except cuCtxCreate are unchanged since CUDA 12.0.
Result Address(const char* symbol, void** function, int cuda_version) {
  if (symbol == nullptr || function == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  constexpr int kNewCtxCreate = 12'050;
  const bool old_create = std::strcmp(symbol, "cuCtxCreate") == 0 && cuda_version < kNewCtxCreate;
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    if (old_create && std::strcmp(version, "_v4") == 0) continue;
    char name[128];
    std::snprintf(name, sizeof name, "%s%s", symbol, version);
    Dl_info self{};
    ::dladdr(reinterpret_cast<void*>(&TheDriver), &self);
    static void* library = ::dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = ::dlsym(library, name);
    if (*function != nullptr) return GPUSONDE_CU_SUCCESS;
  }
  return GPUSONDE_CU_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuGetErrorName(Result result, const char** text) {
  return Describe(result, text, &Named::name);
}

SIMGPU_EXPORT Result cuGetErrorString(Result result, const char** text) {
  return Describe(result, text, &Named::text);
}

SIMGPU_EXPORT Result cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                                         uint64_t /*flags*/, int* status) {
  const Result result = Address(symbol, function, cuda_version);
  if (status != nullptr)
    *status = result == GPUSONDE_CU_SUCCESS ? 0 : 1;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return status != nullptr && result == GPUSONDE_CU_ERROR_NOT_FOUND ? GPUSONDE_CU_SUCCESS : result;
}

SIMGPU_EXPORT Result cuGetProcAddress(const char* symbol, void** function, int cuda_version,
                                      uint64_t /*flags*/) {
  return Address(symbol, function, cuda_version);
}
