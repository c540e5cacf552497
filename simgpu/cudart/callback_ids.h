// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/nvidia/cupti_callbacks.h"

// CUPTI's callback ids of the runtime calls that simgpu implements, in addition to cupti_callbacks.h. Source:
// CUDA 13.0's cupti_runtime_cbid.h; callback_ids_test.cpp compares.
#define SIMGPU_RUNTIME_CALLS(X)                \
  X(cudaGetDeviceCount_v3020, 3)               \
  X(cudaSetDevice_v3020, 16)                   \
  X(cudaGetDevice_v3020, 17)                   \
  X(cudaMalloc_v3020, 20)                      \
  X(cudaFree_v3020, 22)                        \
  X(cudaMallocHost_v3020, 25)                  \
  X(cudaFreeHost_v3020, 26)                    \
  X(cudaHostAlloc_v3020, 27)                   \
  X(cudaMemGetInfo_v3020, 30)                  \
  X(cudaStreamCreate_v3020, 129)               \
  X(cudaStreamSynchronize_v3020, 131)          \
  X(cudaStreamQuery_v3020, 132)                \
  X(cudaEventCreate_v3020, 133)                \
  X(cudaEventCreateWithFlags_v3020, 134)       \
  X(cudaEventRecord_v3020, 135)                \
  X(cudaEventDestroy_v3020, 136)               \
  X(cudaEventSynchronize_v3020, 137)           \
  X(cudaEventQuery_v3020, 138)                 \
  X(cudaEventElapsedTime_v3020, 139)           \
  X(cudaStreamWaitEvent_v3020, 147)            \
  X(cudaHostRegister_v4000, 152)               \
  X(cudaHostUnregister_v4000, 153)             \
  X(cudaDeviceReset_v3020, 164)                \
  X(cudaDeviceSynchronize_v3020, 165)          \
  X(cudaStreamCreateWithFlags_v5000, 198)      \
  X(cudaDeviceGetAttribute_v5000, 200)         \
  X(cudaStreamDestroy_v5050, 201)              \
  X(cudaStreamCreateWithPriority_v5050, 202)   \
  X(cudaGraphCreate_v10000, 286)               \
  X(cudaGraphAddKernelNode_v10000, 289)        \
  X(cudaGraphExecDestroy_v10000, 313)          \
  X(cudaGraphDestroy_v10000, 314)              \
  X(cudaStreamBeginCapture_v10000, 315)        \
  X(cudaStreamIsCapturing_v10000, 317)         \
  X(cudaStreamEndCapture_v10000, 319)          \
  X(cudaMallocAsync_v11020, 373)               \
  X(cudaFreeAsync_v11020, 375)                 \
  X(cudaGraphInstantiateWithFlags_v11040, 418) \
  X(cudaGraphInstantiate_v12000, 443)          \
  X(cudaLibraryLoadData_v12060, 470)           \
  X(cudaLibraryUnload_v12060, 472)             \
  X(cudaLibraryGetKernel_v12060, 473)

namespace simgpu::cudart {

// kCall_cudaMalloc_v3020 etc.: NVIDIA's names with a prefix.
#define SIMGPU_CALL(name, id) inline constexpr uint32_t kCall_##name = id;
#define SIMGPU_WORK_CALL(name, id, what) inline constexpr uint32_t kCall_##name = id;
SIMGPU_RUNTIME_CALLS(SIMGPU_CALL)
GPUSONDE_CUPTI_RUNTIME_CALLS(SIMGPU_WORK_CALL)
#undef SIMGPU_CALL
#undef SIMGPU_WORK_CALL

}  // namespace simgpu::cudart
