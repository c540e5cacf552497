// SPDX-License-Identifier: Apache-2.0
// Launches and kernel functions.

#include "simgpu/cudart/callback_ids.h"
#include "simgpu/cudart/runtime.h"

namespace simgpu::cudart {
namespace {

Error Launch(const void* entry, gpusonde_cudart_dim3 grid, gpusonde_cudart_dim3 block, void** args,
             size_t shared_bytes, void* stream) {
  void* function = FunctionOf(entry);
  if (function == nullptr) return GPUSONDE_CUDART_ERROR_INVALID_DEVICE_FUNCTION;
  return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                        static_cast<unsigned>(shared_bytes), stream, args, nullptr);
}

}  // namespace
}  // namespace simgpu::cudart

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Error cudaLaunchKernel(const void* entry, gpusonde_cudart_dim3 grid, gpusonde_cudart_dim3 block,
                                     void** args, size_t shared_bytes, void* stream) {
  const struct {
    const void* entry;
    gpusonde_cudart_dim3 grid;
    gpusonde_cudart_dim3 block;
    void** args;
    size_t shared_bytes;
    void* stream;
  } params{entry, grid, block, args, shared_bytes, stream};
  RuntimeCall call(kCall_cudaLaunchKernel_v7000, "cudaLaunchKernel", &params, SymbolOf(entry));
  return call.Run([&]() -> Error { return Launch(entry, grid, block, args, shared_bytes, stream); });
}

SIMGPU_EXPORT Error __cudaLaunchKernel(void* kernel, gpusonde_cudart_dim3 grid, gpusonde_cudart_dim3 block,
                                       void** args, size_t shared_bytes, void* stream) {
  const struct {
    void* kernel;
    gpusonde_cudart_dim3 grid;
    gpusonde_cudart_dim3 block;
    void** args;
    size_t shared_bytes;
    void* stream;
  } params{kernel, grid, block, args, shared_bytes, stream};
  RuntimeCall call(kCall___cudaLaunchKernel_v13000, "__cudaLaunchKernel", &params, SymbolOf(kernel));
  return call.Run([&]() -> Error { return Launch(kernel, grid, block, args, shared_bytes, stream); });
}

SIMGPU_EXPORT Error cudaLaunchKernelExC(const gpusonde_cudart_launch_config* config, const void* entry,
                                        void** args) {
  const struct {
    const gpusonde_cudart_launch_config* config;
    const void* entry;
    void** args;
  } params{config, entry, args};
  RuntimeCall call(kCall_cudaLaunchKernelExC_v11060, "cudaLaunchKernelExC", &params, SymbolOf(entry));
  return call.Run([&]() -> Error {
    if (config == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
    return Launch(entry, config->grid, config->block, args, config->shared_bytes, config->stream);
  });
}

SIMGPU_EXPORT Error cudaLibraryLoadData(void** library, const void* image, void* jit_options,
                                        void** jit_values, unsigned jit_count, void* options, void** values,
                                        unsigned count) {
  const struct {
    void** library;
    const void* image;
    void* jit_options;
    void** jit_values;
    unsigned jit_count;
    void* options;
    void** values;
    unsigned count;
  } params{library, image, jit_options, jit_values, jit_count, options, values, count};
  RuntimeCall call(kCall_cudaLibraryLoadData_v12060, "cudaLibraryLoadData", &params);
  return call.Run([&]() -> Error {
    return cuLibraryLoadData(library, image, jit_options, jit_values, jit_count, options, values, count);
  });
}

SIMGPU_EXPORT Error cudaLibraryUnload(void* library) {
  const struct {
    void* library;
  } params{library};
  RuntimeCall call(kCall_cudaLibraryUnload_v12060, "cudaLibraryUnload", &params);
  return call.Run([&]() -> Error { return cuLibraryUnload(library); });
}

SIMGPU_EXPORT Error cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  const struct {
    void** kernel;
    void* library;
    const char* name;
  } params{kernel, library, name};
  RuntimeCall call(kCall_cudaLibraryGetKernel_v12060, "cudaLibraryGetKernel", &params);
  return call.Run([&]() -> Error { return cuLibraryGetKernel(kernel, library, name); });
}
