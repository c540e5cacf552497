/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA runtime API's ABI that simgpu simulates, declared by us: no CUDA package is needed to
 * build. Linux, 64 bit, CUDA 12 and 13. Results are those of the driver API (cuda.h): the two agree since
 * CUDA 10.1.
 *
 * Source of every fact: NVIDIA's CUDA Runtime API documentation (docs.nvidia.com/cuda/cuda-runtime-api) and
 * CUDA 13.0's cuda_runtime_api.h, driver_types.h, vector_types.h and crt/host_runtime.h. cuda_test.cpp
 * compares. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cudaErrorInvalidDeviceFunction: the one result without a counterpart in the driver API */
enum { GPUSONDE_CUDART_ERROR_INVALID_DEVICE_FUNCTION = 98 };

/* dim3 */
struct gpusonde_cudart_dim3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
};

/* cudaMemcpyKind */
enum {
  GPUSONDE_CUDART_HOST_TO_HOST = 0,
  GPUSONDE_CUDART_HOST_TO_DEVICE = 1,
  GPUSONDE_CUDART_DEVICE_TO_HOST = 2,
  GPUSONDE_CUDART_DEVICE_TO_DEVICE = 3,
  GPUSONDE_CUDART_DEFAULT = 4 /* inferred from the addresses */
};

/* cudaKernelNodeParams */
struct gpusonde_cudart_kernel_node {
  void* function;
  struct gpusonde_cudart_dim3 grid;
  struct gpusonde_cudart_dim3 block;
  uint32_t shared_bytes;
  void** params;
  void** extra;
};

/* cudaLaunchConfig_t */
struct gpusonde_cudart_launch_config {
  struct gpusonde_cudart_dim3 grid;
  struct gpusonde_cudart_dim3 block;
  size_t shared_bytes;
  void* stream;
  void* attributes;
  uint32_t attribute_count;
};

#ifdef __cplusplus
}
#endif
