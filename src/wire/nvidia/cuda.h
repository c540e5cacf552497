/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver API's ABI that gpusonde uses (and simgpu simulates), declared by us: no CUDA
 * package is needed to build. Linux, 64 bit, drivers of CUDA 12 and 13.
 *
 * Source of every fact: NVIDIA's CUDA Driver API documentation (docs.nvidia.com/cuda/cuda-driver-api) and
 * CUDA 13.0's cuda.h. cuda_test.cpp compares each with that header where it is installed.
 *
 * Names are NVIDIA's, in our spelling: CUDA_KERNEL_NODE_PARAMS::gridDimX is
 * gpusonde_cu_kernel_node::grid_x. Handles (CUcontext, CUstream, …) are void *. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CUresult */
typedef int32_t gpusonde_cu_result;
enum {
  GPUSONDE_CU_SUCCESS = 0,
  GPUSONDE_CU_ERROR_INVALID_VALUE = 1,
  GPUSONDE_CU_ERROR_OUT_OF_MEMORY = 2,
  GPUSONDE_CU_ERROR_NOT_INITIALIZED = 3,
  GPUSONDE_CU_ERROR_NO_DEVICE = 100,
  GPUSONDE_CU_ERROR_INVALID_DEVICE = 101,
  GPUSONDE_CU_ERROR_INVALID_IMAGE = 200,
  GPUSONDE_CU_ERROR_INVALID_CONTEXT = 201,
  GPUSONDE_CU_ERROR_ECC_UNCORRECTABLE = 214,
  GPUSONDE_CU_ERROR_FILE_NOT_FOUND = 301,
  GPUSONDE_CU_ERROR_OPERATING_SYSTEM = 304,
  GPUSONDE_CU_ERROR_INVALID_HANDLE = 400,
  GPUSONDE_CU_ERROR_NOT_FOUND = 500,
  GPUSONDE_CU_ERROR_NOT_READY = 600,
  GPUSONDE_CU_ERROR_ILLEGAL_ADDRESS = 700,
  GPUSONDE_CU_ERROR_LAUNCH_FAILED = 719,
  GPUSONDE_CU_ERROR_NOT_SUPPORTED = 801,
  GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  GPUSONDE_CU_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  GPUSONDE_CU_ERROR_ILLEGAL_STATE = 401,
  GPUSONDE_CU_ERROR_UNKNOWN = 999
};

/* CUdevice_attribute */
enum {
  GPUSONDE_CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  GPUSONDE_CU_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  GPUSONDE_CU_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  GPUSONDE_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  GPUSONDE_CU_ATTRIBUTE_WARP_SIZE = 10,
  GPUSONDE_CU_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
  GPUSONDE_CU_ATTRIBUTE_GPU_OVERLAP = 15,
  GPUSONDE_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  GPUSONDE_CU_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  GPUSONDE_CU_ATTRIBUTE_ECC_ENABLED = 32,
  GPUSONDE_CU_ATTRIBUTE_PCI_BUS_ID = 33,
  GPUSONDE_CU_ATTRIBUTE_PCI_DEVICE_ID = 34,
  GPUSONDE_CU_ATTRIBUTE_MEMORY_CLOCK_RATE = 36, /* kHz */
  GPUSONDE_CU_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  GPUSONDE_CU_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
  GPUSONDE_CU_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  GPUSONDE_CU_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  GPUSONDE_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  GPUSONDE_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
};

/* CUstream_flags, CUevent_flags, CUstreamCaptureStatus; handles with a meaning of their own */
enum {
  GPUSONDE_CU_STREAM_NON_BLOCKING = 1,
  GPUSONDE_CU_EVENT_DISABLE_TIMING = 2,
  GPUSONDE_CU_CAPTURE_NONE = 0,
  GPUSONDE_CU_CAPTURE_ACTIVE = 1,
  GPUSONDE_CU_CAPTURE_INVALIDATED = 2,
  GPUSONDE_CU_STREAM_LEGACY = 1,     /* CU_STREAM_LEGACY: what null means by default */
  GPUSONDE_CU_STREAM_PER_THREAD = 2, /* CU_STREAM_PER_THREAD */
  GPUSONDE_CU_MEMORYTYPE_HOST = 1,   /* CUmemorytype */
  GPUSONDE_CU_MEMORYTYPE_DEVICE = 2,
  GPUSONDE_CU_MEMORYTYPE_UNIFIED = 4,
  GPUSONDE_CU_POINTER_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
  GPUSONDE_CU_GET_PROC_PER_THREAD = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

/* CU_LAUNCH_PARAM_*: the keys of `extra`, as pointers */
enum {
  GPUSONDE_CU_LAUNCH_PARAM_END = 0,
  GPUSONDE_CU_LAUNCH_PARAM_BUFFER_POINTER = 1,
  GPUSONDE_CU_LAUNCH_PARAM_BUFFER_SIZE = 2
};

/* CUuuid */
struct gpusonde_cu_uuid {
  uint8_t bytes[16];
};

/* CUlaunchConfig */
struct gpusonde_cu_launch_config {
  uint32_t grid_x;
  uint32_t grid_y;
  uint32_t grid_z;
  uint32_t block_x;
  uint32_t block_y;
  uint32_t block_z;
  uint32_t shared_bytes;
  void* stream;
  void* attributes; /* CUlaunchAttribute * */
  uint32_t attribute_count;
};

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct gpusonde_cu_kernel_node {
  void* function;
  uint32_t grid_x;
  uint32_t grid_y;
  uint32_t grid_z;
  uint32_t block_x;
  uint32_t block_y;
  uint32_t block_z;
  uint32_t shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  void* context;
};

/* CUDA_MEMSET_NODE_PARAMS_v1 */
struct gpusonde_cu_memset_node {
  uint64_t target;
  size_t pitch;
  uint32_t value;
  uint32_t element_bytes; /* 1, 2 or 4 */
  size_t width;           /* in elements */
  size_t height;
};

/* CUDA_MEMCPY3D_v2 */
struct gpusonde_cu_memcpy3d {
  size_t source_x_bytes;
  size_t source_y;
  size_t source_z;
  size_t source_lod;
  uint32_t source_type; /* CUmemorytype */
  const void* source_host;
  uint64_t source_device;
  void* source_array;
  void* reserved0;
  size_t source_pitch;
  size_t source_height;
  size_t target_x_bytes;
  size_t target_y;
  size_t target_z;
  size_t target_lod;
  uint32_t target_type;
  void* target_host;
  uint64_t target_device;
  void* target_array;
  void* reserved1;
  size_t target_pitch;
  size_t target_height;
  size_t width_bytes;
  size_t height;
  size_t depth;
};

#ifdef __cplusplus
}
#endif
