// SPDX-License-Identifier: Apache-2.0
// Devices.
#include "simgpu/cudart/callback_ids.h"
#include "simgpu/cudart/runtime.h"

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Error cudaGetDeviceCount(int* count) {
  const struct {
    int* count;
  } params{count};
  RuntimeCall call(kCall_cudaGetDeviceCount_v3020, "cudaGetDeviceCount", &params);
  return call.Run([&]() -> Error { return cuDeviceGetCount(count); });
}

SIMGPU_EXPORT Error cudaSetDevice(int device) {
  const struct {
    int device;
  } params{device};
  RuntimeCall call(kCall_cudaSetDevice_v3020, "cudaSetDevice", &params);
  return call.Run([&]() -> Error {
    void* context = nullptr;
    const Error error = cuDevicePrimaryCtxRetain(&context, device);
    return error != GPUSONDE_CU_SUCCESS ? error : cuCtxSetCurrent(context);
  });
}

SIMGPU_EXPORT Error cudaGetDevice(int* device) {
  const struct {
    int* device;
  } params{device};
  RuntimeCall call(kCall_cudaGetDevice_v3020, "cudaGetDevice", &params);
  return call.Run([&]() -> Error { return cuCtxGetDevice(device); });
}

SIMGPU_EXPORT Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  const struct {
    int* value;
    int attribute;
    int device;
  } params{value, attribute, device};
  RuntimeCall call(kCall_cudaDeviceGetAttribute_v5000, "cudaDeviceGetAttribute", &params);
  return call.Run([&]() -> Error { return cuDeviceGetAttribute(value, attribute, device); });
}

SIMGPU_EXPORT Error cudaDeviceSynchronize() {
  RuntimeCall call(kCall_cudaDeviceSynchronize_v3020, "cudaDeviceSynchronize", nullptr);
  return call.Run([&]() -> Error { return cuCtxSynchronize(); });
}

SIMGPU_EXPORT Error cudaDeviceReset() {
  RuntimeCall call(kCall_cudaDeviceReset_v3020, "cudaDeviceReset", nullptr);
  return call.Run([&]() -> Error { return cuCtxSynchronize(); });
}
