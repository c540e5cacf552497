// SPDX-License-Identifier: Apache-2.0
// Compares our declarations of the CUDA driver's and runtime's ABI with NVIDIA's own headers, if the build
// found them.
#include "wire/nvidia/cuda.h"

#include <gtest/gtest.h>

#include "wire/nvidia/cudart.h"

#ifdef GPUSONDE_CUPTI_HEADERS

#include <cuda.h>
#include <driver_types.h>
#include <vector_types.h>

#include <utility>

namespace {

#define SAME_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
// Offset and size of one field.
#define SAME_FIELD(ours, field, theirs, their_field)                      \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field) && \
                sizeof(std::declval<ours&>().field) == sizeof(std::declval<theirs&>().their_field))

SAME_VALUE(GPUSONDE_CU_SUCCESS, CUDA_SUCCESS);
#define SAME_ERROR(name) SAME_VALUE(GPUSONDE_CU_ERROR_##name, CUDA_ERROR_##name)
SAME_ERROR(INVALID_VALUE);
SAME_ERROR(OUT_OF_MEMORY);
SAME_ERROR(NOT_INITIALIZED);
SAME_ERROR(NO_DEVICE);
SAME_ERROR(INVALID_DEVICE);
SAME_ERROR(INVALID_IMAGE);
SAME_ERROR(INVALID_CONTEXT);
SAME_ERROR(FILE_NOT_FOUND);
SAME_ERROR(INVALID_HANDLE);
SAME_ERROR(ILLEGAL_STATE);
SAME_ERROR(NOT_FOUND);
SAME_ERROR(NOT_READY);
SAME_ERROR(NOT_SUPPORTED);
SAME_ERROR(STREAM_CAPTURE_UNSUPPORTED);
SAME_ERROR(STREAM_CAPTURE_UNMATCHED);

#define SAME_ATTRIBUTE(name) SAME_VALUE(GPUSONDE_CU_ATTRIBUTE_##name, CU_DEVICE_ATTRIBUTE_##name)
SAME_ATTRIBUTE(MAX_THREADS_PER_BLOCK);
SAME_ATTRIBUTE(MAX_BLOCK_DIM_X);
SAME_ATTRIBUTE(MAX_BLOCK_DIM_Y);
SAME_ATTRIBUTE(MAX_BLOCK_DIM_Z);
SAME_ATTRIBUTE(MAX_GRID_DIM_X);
SAME_ATTRIBUTE(MAX_GRID_DIM_Y);
SAME_ATTRIBUTE(MAX_GRID_DIM_Z);
SAME_VALUE(GPUSONDE_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME_ATTRIBUTE(WARP_SIZE);
SAME_ATTRIBUTE(CLOCK_RATE);
SAME_ATTRIBUTE(GPU_OVERLAP);
SAME_ATTRIBUTE(MULTIPROCESSOR_COUNT);
SAME_ATTRIBUTE(CONCURRENT_KERNELS);
SAME_ATTRIBUTE(ECC_ENABLED);
SAME_ATTRIBUTE(PCI_BUS_ID);
SAME_ATTRIBUTE(MEMORY_CLOCK_RATE);
SAME_ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR);
SAME_ATTRIBUTE(ASYNC_ENGINE_COUNT);
SAME_ATTRIBUTE(UNIFIED_ADDRESSING);
SAME_ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR);
SAME_ATTRIBUTE(COMPUTE_CAPABILITY_MINOR);

SAME_VALUE(GPUSONDE_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(GPUSONDE_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(GPUSONDE_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(GPUSONDE_CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST);
SAME_VALUE(GPUSONDE_CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(GPUSONDE_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);

SAME_VALUE(sizeof(gpusonde_cu_uuid), sizeof(CUuuid));
SAME_FIELD(gpusonde_cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(gpusonde_cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(gpusonde_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(gpusonde_cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(gpusonde_cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(gpusonde_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_VALUE(sizeof(gpusonde_cu_launch_config), sizeof(CUlaunchConfig));

#define SAME_KERNEL(ours, theirs) \
  SAME_FIELD(gpusonde_cu_kernel_node, ours, CUDA_KERNEL_NODE_PARAMS_v2, theirs)
SAME_KERNEL(function, func);
SAME_KERNEL(grid_x, gridDimX);
SAME_KERNEL(block_x, blockDimX);
SAME_KERNEL(shared_bytes, sharedMemBytes);
SAME_KERNEL(params, kernelParams);
SAME_KERNEL(extra, extra);
SAME_KERNEL(kernel, kern);
SAME_KERNEL(context, ctx);
SAME_VALUE(sizeof(gpusonde_cu_kernel_node), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));

#define SAME_MEMSET(ours, theirs) \
  SAME_FIELD(gpusonde_cu_memset_node, ours, CUDA_MEMSET_NODE_PARAMS_v1, theirs)
SAME_MEMSET(target, dst);
SAME_MEMSET(pitch, pitch);
SAME_MEMSET(value, value);
SAME_MEMSET(element_bytes, elementSize);
SAME_MEMSET(width, width);
SAME_MEMSET(height, height);
SAME_VALUE(sizeof(gpusonde_cu_memset_node), sizeof(CUDA_MEMSET_NODE_PARAMS_v1));

#define SAME_COPY(ours, theirs) SAME_FIELD(gpusonde_cu_memcpy3d, ours, CUDA_MEMCPY3D_v2, theirs)
SAME_COPY(source_type, srcMemoryType);
SAME_COPY(source_host, srcHost);
SAME_COPY(source_device, srcDevice);
SAME_COPY(target_type, dstMemoryType);
SAME_COPY(target_host, dstHost);
SAME_COPY(target_device, dstDevice);
SAME_COPY(width_bytes, WidthInBytes);
SAME_COPY(height, Height);
SAME_COPY(depth, Depth);
SAME_VALUE(sizeof(gpusonde_cu_memcpy3d), sizeof(CUDA_MEMCPY3D_v2));

SAME_VALUE(GPUSONDE_CUDART_ERROR_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction);
SAME_VALUE(GPUSONDE_CU_ERROR_INVALID_VALUE, cudaErrorInvalidValue);
SAME_VALUE(GPUSONDE_CU_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME_VALUE(GPUSONDE_CU_ERROR_NOT_READY, cudaErrorNotReady);
SAME_VALUE(GPUSONDE_CUDART_HOST_TO_DEVICE, cudaMemcpyHostToDevice);
SAME_VALUE(GPUSONDE_CUDART_DEVICE_TO_HOST, cudaMemcpyDeviceToHost);
SAME_VALUE(GPUSONDE_CUDART_DEVICE_TO_DEVICE, cudaMemcpyDeviceToDevice);
SAME_VALUE(GPUSONDE_CUDART_DEFAULT, cudaMemcpyDefault);
SAME_VALUE(sizeof(gpusonde_cudart_dim3), sizeof(dim3));
SAME_FIELD(gpusonde_cudart_kernel_node, function, cudaKernelNodeParams, func);
SAME_FIELD(gpusonde_cudart_kernel_node, grid, cudaKernelNodeParams, gridDim);
SAME_FIELD(gpusonde_cudart_kernel_node, shared_bytes, cudaKernelNodeParams, sharedMemBytes);
SAME_FIELD(gpusonde_cudart_kernel_node, params, cudaKernelNodeParams, kernelParams);
SAME_FIELD(gpusonde_cudart_launch_config, grid, cudaLaunchConfig_t, gridDim);
SAME_FIELD(gpusonde_cudart_launch_config, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
SAME_FIELD(gpusonde_cudart_launch_config, stream, cudaLaunchConfig_t, stream);
SAME_VALUE(sizeof(gpusonde_cudart_launch_config), sizeof(cudaLaunchConfig_t));

}  // namespace

#endif

TEST(CudaAbi, MatchesNvidiasHeaders) {
#ifdef GPUSONDE_CUPTI_HEADERS
  SUCCEED() << "compared by static_assert with CUDA " << CUDA_VERSION;
#else
  GTEST_SKIP() << "this machine has no CUDA toolkit (cuda.h) to compare with";
#endif
}
