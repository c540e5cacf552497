// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs.
#include "simgpu/cudart/callback_ids.h"
#include "simgpu/cudart/runtime.h"

namespace simgpu::cudart {
namespace {

Error AddKernelNode(void** node, void* graph, void* const* dependencies, size_t count,
                    const gpusonde_cudart_kernel_node* params) {
  if (params == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  const gpusonde_cu_kernel_node driver_params = {
      .function = FunctionOf(params->function),
      .grid_x = params->grid.x,
      .grid_y = params->grid.y,
      .grid_z = params->grid.z,
      .block_x = params->block.x,
      .block_y = params->block.y,
      .block_z = params->block.z,
      .shared_bytes = params->shared_bytes,
      .params = params->params,
      .extra = params->extra,
      .kernel = nullptr,
      .context = nullptr,
  };
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &driver_params);
}

}  // namespace
}  // namespace simgpu::cudart

using namespace simgpu::cudart;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Error cudaStreamCreate(void** stream) {
  const struct {
    void** stream;
  } params{stream};
  RuntimeCall call(kCall_cudaStreamCreate_v3020, "cudaStreamCreate", &params);
  return call.Run([&]() -> Error { return cuStreamCreate(stream, 0); });
}

SIMGPU_EXPORT Error cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  const struct {
    void** stream;
    unsigned flags;
  } params{stream, flags};
  RuntimeCall call(kCall_cudaStreamCreateWithFlags_v5000, "cudaStreamCreateWithFlags", &params);
  return call.Run([&]() -> Error { return cuStreamCreate(stream, flags); });
}

SIMGPU_EXPORT Error cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  const struct {
    void** stream;
    unsigned flags;
    int priority;
  } params{stream, flags, priority};
  RuntimeCall call(kCall_cudaStreamCreateWithPriority_v5050, "cudaStreamCreateWithPriority", &params);
  return call.Run([&]() -> Error { return cuStreamCreateWithPriority(stream, flags, priority); });
}

SIMGPU_EXPORT Error cudaStreamDestroy(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  RuntimeCall call(kCall_cudaStreamDestroy_v5050, "cudaStreamDestroy", &params);
  return call.Run([&]() -> Error { return cuStreamDestroy_v2(stream); });
}

SIMGPU_EXPORT Error cudaStreamSynchronize(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  RuntimeCall call(kCall_cudaStreamSynchronize_v3020, "cudaStreamSynchronize", &params);
  return call.Run([&]() -> Error { return cuStreamSynchronize(stream); });
}

SIMGPU_EXPORT Error cudaStreamQuery(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  RuntimeCall call(kCall_cudaStreamQuery_v3020, "cudaStreamQuery", &params);
  return call.Run([&]() -> Error { return cuStreamQuery(stream); });
}

SIMGPU_EXPORT Error cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const struct {
    void* stream;
    void* event;
    unsigned flags;
  } params{stream, event, flags};
  RuntimeCall call(kCall_cudaStreamWaitEvent_v3020, "cudaStreamWaitEvent", &params);
  return call.Run([&]() -> Error { return cuStreamWaitEvent(stream, event, flags); });
}

SIMGPU_EXPORT Error cudaStreamIsCapturing(void* stream, uint32_t* status) {
  const struct {
    void* stream;
    uint32_t* status;
  } params{stream, status};
  RuntimeCall call(kCall_cudaStreamIsCapturing_v10000, "cudaStreamIsCapturing", &params);
  return call.Run([&]() -> Error { return cuStreamIsCapturing(stream, status); });
}

SIMGPU_EXPORT Error cudaStreamBeginCapture(void* stream, uint32_t mode) {
  const struct {
    void* stream;
    uint32_t mode;
  } params{stream, mode};
  RuntimeCall call(kCall_cudaStreamBeginCapture_v10000, "cudaStreamBeginCapture", &params);
  return call.Run([&]() -> Error { return cuStreamBeginCapture_v2(stream, mode); });
}

SIMGPU_EXPORT Error cudaStreamEndCapture(void* stream, void** graph) {
  const struct {
    void* stream;
    void** graph;
  } params{stream, graph};
  RuntimeCall call(kCall_cudaStreamEndCapture_v10000, "cudaStreamEndCapture", &params);
  return call.Run([&]() -> Error { return cuStreamEndCapture(stream, graph); });
}

SIMGPU_EXPORT Error cudaEventCreate(void** event) {
  const struct {
    void** event;
  } params{event};
  RuntimeCall call(kCall_cudaEventCreate_v3020, "cudaEventCreate", &params);
  return call.Run([&]() -> Error { return cuEventCreate(event, 0); });
}

SIMGPU_EXPORT Error cudaEventCreateWithFlags(void** event, unsigned flags) {
  const struct {
    void** event;
    unsigned flags;
  } params{event, flags};
  RuntimeCall call(kCall_cudaEventCreateWithFlags_v3020, "cudaEventCreateWithFlags", &params);
  return call.Run([&]() -> Error { return cuEventCreate(event, flags); });
}

SIMGPU_EXPORT Error cudaEventDestroy(void* event) {
  const struct {
    void* event;
  } params{event};
  RuntimeCall call(kCall_cudaEventDestroy_v3020, "cudaEventDestroy", &params);
  return call.Run([&]() -> Error { return cuEventDestroy_v2(event); });
}

SIMGPU_EXPORT Error cudaEventRecord(void* event, void* stream) {
  const struct {
    void* event;
    void* stream;
  } params{event, stream};
  RuntimeCall call(kCall_cudaEventRecord_v3020, "cudaEventRecord", &params);
  return call.Run([&]() -> Error { return cuEventRecord(event, stream); });
}

SIMGPU_EXPORT Error cudaEventQuery(void* event) {
  const struct {
    void* event;
  } params{event};
  RuntimeCall call(kCall_cudaEventQuery_v3020, "cudaEventQuery", &params);
  return call.Run([&]() -> Error { return cuEventQuery(event); });
}

SIMGPU_EXPORT Error cudaEventSynchronize(void* event) {
  const struct {
    void* event;
  } params{event};
  RuntimeCall call(kCall_cudaEventSynchronize_v3020, "cudaEventSynchronize", &params);
  return call.Run([&]() -> Error { return cuEventSynchronize(event); });
}

SIMGPU_EXPORT Error cudaEventElapsedTime(float* elapsed_ms, void* from, void* to) {
  const struct {
    float* elapsed_ms;
    void* from;
    void* to;
  } params{elapsed_ms, from, to};
  RuntimeCall call(kCall_cudaEventElapsedTime_v3020, "cudaEventElapsedTime", &params);
  return call.Run([&]() -> Error { return cuEventElapsedTime(elapsed_ms, from, to); });
}

SIMGPU_EXPORT Error cudaGraphCreate(void** graph, unsigned flags) {
  const struct {
    void** graph;
    unsigned flags;
  } params{graph, flags};
  RuntimeCall call(kCall_cudaGraphCreate_v10000, "cudaGraphCreate", &params);
  return call.Run([&]() -> Error { return cuGraphCreate(graph, flags); });
}

SIMGPU_EXPORT Error cudaGraphDestroy(void* graph) {
  const struct {
    void* graph;
  } params{graph};
  RuntimeCall call(kCall_cudaGraphDestroy_v10000, "cudaGraphDestroy", &params);
  return call.Run([&]() -> Error { return cuGraphDestroy(graph); });
}

SIMGPU_EXPORT Error cudaGraphAddKernelNode(void** node, void* graph, void* const* dependencies, size_t count,
                                           const gpusonde_cudart_kernel_node* node_params) {
  const struct {
    void** node;
    void* graph;
    void* const* dependencies;
    size_t count;
    const gpusonde_cudart_kernel_node* node_params;
  } params{node, graph, dependencies, count, node_params};
  RuntimeCall call(kCall_cudaGraphAddKernelNode_v10000, "cudaGraphAddKernelNode", &params);
  return call.Run([&]() -> Error { return AddKernelNode(node, graph, dependencies, count, node_params); });
}

SIMGPU_EXPORT Error cudaGraphInstantiate(void** exec, void* graph, unsigned long long flags) {
  const struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } params{exec, graph, flags};
  RuntimeCall call(kCall_cudaGraphInstantiate_v12000, "cudaGraphInstantiate", &params);
  return call.Run([&]() -> Error { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

SIMGPU_EXPORT Error cudaGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  const struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } params{exec, graph, flags};
  RuntimeCall call(kCall_cudaGraphInstantiateWithFlags_v11040, "cudaGraphInstantiateWithFlags", &params);
  return call.Run([&]() -> Error { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

SIMGPU_EXPORT Error cudaGraphLaunch(void* exec, void* stream) {
  const struct {
    void* exec;
    void* stream;
  } params{exec, stream};
  RuntimeCall call(kCall_cudaGraphLaunch_v10000, "cudaGraphLaunch", &params);
  return call.Run([&]() -> Error { return cuGraphLaunch(exec, stream); });
}

SIMGPU_EXPORT Error cudaGraphExecDestroy(void* exec) {
  const struct {
    void* exec;
  } params{exec};
  RuntimeCall call(kCall_cudaGraphExecDestroy_v10000, "cudaGraphExecDestroy", &params);
  return call.Run([&]() -> Error { return cuGraphExecDestroy(exec); });
}
