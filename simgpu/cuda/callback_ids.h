// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/nvidia/cupti_callbacks.h"

// CUPTI's callback ids of the driver calls that simgpu implements, in addition to cupti_callbacks.h. Source:
// CUDA 13.0's cupti_driver_cbid.h; callback_ids_test.cpp compares.
#define SIMGPU_DRIVER_CALLS(X)          \
  X(cuInit, 1)                          \
  X(cuDriverGetVersion, 2)              \
  X(cuDeviceGet, 3)                     \
  X(cuDeviceGetCount, 4)                \
  X(cuDeviceGetName, 5)                 \
  X(cuDeviceTotalMem_v2, 259)           \
  X(cuDeviceGetAttribute, 9)            \
  X(cuDeviceGetPCIBusId, 332)           \
  X(cuDeviceGetUuid_v2, 647)            \
  X(cuDevicePrimaryCtxRetain, 386)      \
  X(cuDevicePrimaryCtxGetState, 392)    \
  X(cuDevicePrimaryCtxRelease_v2, 544)  \
  X(cuDevicePrimaryCtxReset_v2, 545)    \
  X(cuDevicePrimaryCtxSetFlags_v2, 546) \
  X(cuCtxCreate_v2, 235)                \
  X(cuCtxCreate_v4, 757)                \
  X(cuCtxDestroy_v2, 322)               \
  X(cuCtxPushCurrent_v2, 323)           \
  X(cuCtxPopCurrent_v2, 324)            \
  X(cuCtxSetCurrent, 303)               \
  X(cuCtxGetCurrent, 304)               \
  X(cuCtxGetDevice, 16)                 \
  X(cuCtxGetId, 695)                    \
  X(cuCtxSynchronize, 17)               \
  X(cuModuleLoad, 18)                   \
  X(cuModuleLoadData, 19)               \
  X(cuModuleLoadDataEx, 20)             \
  X(cuModuleUnload, 22)                 \
  X(cuModuleGetFunction, 23)            \
  X(cuLibraryLoadData, 678)             \
  X(cuLibraryUnload, 680)               \
  X(cuLibraryGetKernel, 681)            \
  X(cuKernelGetFunction, 683)           \
  X(cuFuncGetName, 718)                 \
  X(cuFuncGetModule, 566)               \
  X(cuMemGetInfo_v2, 242)               \
  X(cuMemAlloc_v2, 243)                 \
  X(cuMemFree_v2, 245)                  \
  X(cuMemAllocAsync, 598)               \
  X(cuMemFreeAsync, 600)                \
  X(cuMemAllocHost_v2, 294)             \
  X(cuMemHostAlloc, 39)                 \
  X(cuMemFreeHost, 38)                  \
  X(cuMemHostRegister_v2, 379)          \
  X(cuMemHostUnregister, 302)           \
  X(cuPointerGetAttribute, 310)         \
  X(cuStreamCreate, 124)                \
  X(cuStreamCreateWithPriority, 367)    \
  X(cuStreamDestroy_v2, 326)            \
  X(cuStreamSynchronize, 126)           \
  X(cuStreamQuery, 125)                 \
  X(cuStreamWaitEvent, 295)             \
  X(cuStreamGetCtx, 483)                \
  X(cuStreamBeginCapture_v2, 539)       \
  X(cuStreamEndCapture, 497)            \
  X(cuStreamIsCapturing, 499)           \
  X(cuEventCreate, 118)                 \
  X(cuEventDestroy_v2, 325)             \
  X(cuEventRecord, 119)                 \
  X(cuEventRecordWithFlags, 587)        \
  X(cuEventQuery, 120)                  \
  X(cuEventSynchronize, 121)            \
  X(cuEventElapsedTime, 123)            \
  X(cuEventElapsedTime_v2, 780)         \
  X(cuGraphCreate, 501)                 \
  X(cuGraphDestroy, 517)                \
  X(cuGraphClone, 523)                  \
  X(cuGraphAddKernelNode_v2, 689)       \
  X(cuGraphAddMemcpyNode, 504)          \
  X(cuGraphAddMemsetNode, 506)          \
  X(cuGraphAddEmptyNode, 526)           \
  X(cuGraphGetNodes, 534)               \
  X(cuGraphNodeGetType, 509)            \
  X(cuGraphInstantiateWithFlags, 643)   \
  X(cuGraphInstantiateWithParams, 656)  \
  X(cuGraphUpload, 580)                 \
  X(cuGraphExecDestroy, 516)

namespace simgpu::cuda {

// kCall_cuInit etc.: NVIDIA's names with a prefix.
#define SIMGPU_CALL(name, id) inline constexpr uint32_t kCall_##name = id;
#define SIMGPU_WORK_CALL(name, id, what) inline constexpr uint32_t kCall_##name = id;
SIMGPU_DRIVER_CALLS(SIMGPU_CALL)
GPUSONDE_CUPTI_DRIVER_CALLS(SIMGPU_WORK_CALL)
#undef SIMGPU_CALL
#undef SIMGPU_WORK_CALL

}  // namespace simgpu::cuda
