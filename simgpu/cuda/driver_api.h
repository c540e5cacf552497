// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/nvidia/cuda.h"

// The entry points of libcuda.so.1 that libcudart and the simgpu program call.
extern "C" {
int32_t cuInit(unsigned flags);
int32_t cuDriverGetVersion(int* version);
int32_t cuGetErrorName(int32_t result, const char** text);
int32_t cuGetErrorString(int32_t result, const char** text);
int32_t cuGetExportTable(const void** table, const void* id);
int32_t cuDeviceGetCount(int* count);
int32_t cuDeviceGetAttribute(int* value, int attribute, int device);
int32_t cuDeviceGetPCIBusId(char* id, int bytes, int device);
int32_t cuDevicePrimaryCtxRetain(void** context, int device);
int32_t cuCtxSetCurrent(void* context);
int32_t cuCtxGetCurrent(void** context);
int32_t cuCtxGetDevice(int* device);
int32_t cuCtxSynchronize();
int32_t cuModuleLoadData(void** module, const void* image);
int32_t cuModuleGetFunction(void** function, void* module, const char* name);
int32_t cuLibraryLoadData(void** library, const void* image, void* jit_options, void** jit_values,
                          unsigned jit_count, void* options, void** values, unsigned count);
int32_t cuLibraryGetKernel(void** kernel, void* library, const char* name);
int32_t cuLibraryUnload(void* library);
int32_t cuFuncGetName(const char** name, void* function);
int32_t cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
int32_t cuMemAlloc_v2(uint64_t* address, size_t bytes);
int32_t cuMemFree_v2(uint64_t address);
int32_t cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream);
int32_t cuMemFreeAsync(uint64_t address, void* stream);
int32_t cuMemAllocHost_v2(void** pointer, size_t bytes);
int32_t cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags);
int32_t cuMemFreeHost(void* pointer);
int32_t cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags);
int32_t cuMemHostUnregister(void* pointer);
int32_t cuMemcpy(uint64_t target, uint64_t source, size_t bytes);
int32_t cuMemcpyAsync(uint64_t target, uint64_t source, size_t bytes, void* stream);
int32_t cuMemcpyHtoD_v2(uint64_t target, const void* source, size_t bytes);
int32_t cuMemcpyDtoH_v2(void* target, uint64_t source, size_t bytes);
int32_t cuMemcpyDtoD_v2(uint64_t target, uint64_t source, size_t bytes);
int32_t cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream);
int32_t cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream);
int32_t cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream);
int32_t cuMemsetD8_v2(uint64_t target, unsigned char value, size_t count);
int32_t cuMemsetD8Async(uint64_t target, unsigned char value, size_t count, void* stream);
int32_t cuStreamCreate(void** stream, unsigned flags);
int32_t cuStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int32_t cuStreamDestroy_v2(void* stream);
int32_t cuStreamSynchronize(void* stream);
int32_t cuStreamQuery(void* stream);
int32_t cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int32_t cuStreamIsCapturing(void* stream, uint32_t* status);
int32_t cuStreamBeginCapture_v2(void* stream, uint32_t mode);
int32_t cuStreamEndCapture(void* stream, void** graph);
int32_t cuEventCreate(void** event, unsigned flags);
int32_t cuEventDestroy_v2(void* event);
int32_t cuEventRecord(void* event, void* stream);
int32_t cuEventQuery(void* event);
int32_t cuEventSynchronize(void* event);
int32_t cuEventElapsedTime(float* elapsed_ms, void* from, void* to);
int32_t cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                       void** kernel_params, void** extra);
int32_t cuGraphCreate(void** graph, unsigned flags);
int32_t cuGraphDestroy(void* graph);
int32_t cuGraphAddKernelNode_v2(void** node, void* graph, void* const* dependencies, size_t count,
                                const gpusonde_cu_kernel_node* node_params);
int32_t cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags);
int32_t cuGraphLaunch(void* exec, void* stream);
int32_t cuGraphExecDestroy(void* exec);
}
