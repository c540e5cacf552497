// SPDX-License-Identifier: Apache-2.0
// Graphs: explicit nodes, capture, instantiation, launch.
#include <algorithm>
#include <span>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "simgpu/cuda/graph.h"
#include "simgpu/cuda/launch.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

constexpr uint32_t kEmptyNode = 5;  // CU_GRAPH_NODE_TYPE_EMPTY

// The nodes that a new one depends on; false when one of them is not in this graph.
bool Dependencies(const Graph& graph, void* const* nodes, size_t count, std::vector<Node*>& dependencies) {
  if (count > 0 && nodes == nullptr) return false;
  for (void* handle : std::span(nodes, count)) {
    auto* node = As<Node>(handle);
    if (node == nullptr || node->graph != &graph) return false;
    dependencies.push_back(node);
  }
  return true;
}

Result Add(void** made, void* graph_handle, void* const* nodes, size_t count, uint32_t type, Node** node) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* graph = As<Graph>(graph_handle);
  std::vector<Node*> dependencies;
  if (graph == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (made == nullptr || !Dependencies(*graph, nodes, count, dependencies))
    return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *node = &AddNode(*graph, type, std::move(dependencies));
  *made = *node;
  return GPUSONDE_CU_SUCCESS;
}

Result AddKernel(void** made, void* graph, void* const* nodes, size_t count,
                 const gpusonde_cu_kernel_node* params) {
  if (params == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Launch launch;
  Result result = MakeLaunch(launch, params->function != nullptr ? params->function : params->kernel,
                             {params->grid_x, params->grid_y, params->grid_z},
                             {params->block_x, params->block_y, params->block_z}, params->shared_bytes,
                             params->params, params->extra);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Node* node = nullptr;
  result = Add(made, graph, nodes, count, GPUSONDE_CU_GRAPH_NODE_KERNEL, &node);
  if (result == GPUSONDE_CU_SUCCESS) node->launch = launch;
  return result;
}

uint64_t AddressOf(uint32_t type, const void* host, uint64_t device) {
  return type == GPUSONDE_CU_MEMORYTYPE_HOST ? reinterpret_cast<uintptr_t>(host) : device;
}

Result AddCopy(void** made, void* graph, void* const* nodes, size_t count,
               const gpusonde_cu_memcpy3d* params) {
  if (params == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  const Result result = Add(made, graph, nodes, count, GPUSONDE_CU_GRAPH_NODE_MEMCPY, &node);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  node->transfer = Classify(AddressOf(params->target_type, params->target_host, params->target_device),
                            AddressOf(params->source_type, params->source_host, params->source_device));
  node->transfer.bytes = static_cast<int64_t>(params->width_bytes * std::max<size_t>(1, params->height) *
                                              std::max<size_t>(1, params->depth));
  node->transfer.async = true;
  return GPUSONDE_CU_SUCCESS;
}

Result AddSet(void** made, void* graph, void* const* nodes, size_t count,
              const gpusonde_cu_memset_node* params) {
  if (params == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  const Result result = Add(made, graph, nodes, count, GPUSONDE_CU_GRAPH_NODE_MEMSET, &node);
  if (result != GPUSONDE_CU_SUCCESS) return result;
  node->fill = {.value = params->value,
                .bytes = static_cast<int64_t>(params->width * params->element_bytes *
                                              std::max<size_t>(1, params->height)),
                .async = true};
  return GPUSONDE_CU_SUCCESS;
}

Result BeginCapture(void* stream_handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(stream_handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  // The legacy stream waits for all others, so it can't be captured.
  if (stream == &stream->context.legacy) return GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return GPUSONDE_CU_ERROR_ILLEGAL_STATE;
  Graph& graph = MakeGraph();
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  stream->capture = new Capture{stream, &graph, driver.next_capture++, {stream}};
  stream->last_captured.clear();
  return GPUSONDE_CU_SUCCESS;
}

Result EndCapture(void* stream_handle, void** graph) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(stream_handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (graph == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr || stream->capture->origin != stream)
    return GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNMATCHED;
  const std::lock_guard lock(TheDriver().mutex);
  const std::unique_ptr<Capture> capture(stream->capture);
  for (Stream* captured : capture->streams) {
    captured->capture = nullptr;
    captured->last_captured.clear();
  }
  *graph = capture->graph;
  return GPUSONDE_CU_SUCCESS;
}

Result InstantiateInto(void** exec, void* graph_handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* graph = As<Graph>(graph_handle);
  if (graph == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (exec == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *exec = &Instantiate(*graph);
  return GPUSONDE_CU_SUCCESS;
}

Result LaunchGraph(void* exec_handle, void* stream_handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const auto* exec = As<GraphExec>(exec_handle);
  Stream* stream = StreamOf(stream_handle);
  if (exec == nullptr || stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return GPUSONDE_CU_ERROR_NOT_SUPPORTED;  // a graph inside a graph
  Run(*exec, *stream);
  return GPUSONDE_CU_SUCCESS;
}

Result DestroyGraph(void* handle) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* graph = As<Graph>(handle);
  if (graph == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING;
  event.graph = graph;
  NotifyResource(event);
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  std::erase_if(driver.graphs, [&](const auto& owned) { return owned.get() == graph; });
  return GPUSONDE_CU_SUCCESS;
}

Result DestroyExec(void* handle) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* exec = As<GraphExec>(handle);
  if (exec == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
  event.graph_exec = exec;
  NotifyResource(event);
  delete exec;
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuGraphCreate(void** graph, unsigned flags) {
  const struct {
    void** graph;
    unsigned flags;
  } params{graph, flags};
  ApiCall call(kCall_cuGraphCreate, "cuGraphCreate", &params);
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (graph == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  *graph = &MakeGraph();
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuGraphDestroy(void* graph) {
  const struct {
    void* graph;
  } params{graph};
  ApiCall call(kCall_cuGraphDestroy, "cuGraphDestroy", &params);
  return call.Return(DestroyGraph(graph));
}

SIMGPU_EXPORT Result cuGraphClone(void** clone, void* original) {
  const struct {
    void** clone;
    void* original;
  } params{clone, original};
  ApiCall call(kCall_cuGraphClone, "cuGraphClone", &params);
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (clone == nullptr || As<Graph>(original) == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  Graph& copy = MakeGraph();
  CloneInto(copy, *As<Graph>(original));
  *clone = &copy;
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuGraphAddKernelNode_v2(void** node, void* graph, void* const* dependencies,
                                             size_t count, const gpusonde_cu_kernel_node* node_params) {
  const struct {
    void** node;
    void* graph;
    void* const* dependencies;
    size_t count;
    const gpusonde_cu_kernel_node* node_params;
  } params{node, graph, dependencies, count, node_params};
  ApiCall call(kCall_cuGraphAddKernelNode_v2, "cuGraphAddKernelNode_v2", &params);
  return call.Return(AddKernel(node, graph, dependencies, count, node_params));
}

SIMGPU_EXPORT Result cuGraphAddMemcpyNode(void** node, void* graph, void* const* dependencies, size_t count,
                                          const gpusonde_cu_memcpy3d* node_params, void* context) {
  const struct {
    void** node;
    void* graph;
    void* const* dependencies;
    size_t count;
    const gpusonde_cu_memcpy3d* node_params;
    void* context;
  } params{node, graph, dependencies, count, node_params, context};
  ApiCall call(kCall_cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", &params);
  return call.Return(AddCopy(node, graph, dependencies, count, node_params));
}

SIMGPU_EXPORT Result cuGraphAddMemsetNode(void** node, void* graph, void* const* dependencies, size_t count,
                                          const gpusonde_cu_memset_node* node_params, void* context) {
  const struct {
    void** node;
    void* graph;
    void* const* dependencies;
    size_t count;
    const gpusonde_cu_memset_node* node_params;
    void* context;
  } params{node, graph, dependencies, count, node_params, context};
  ApiCall call(kCall_cuGraphAddMemsetNode, "cuGraphAddMemsetNode", &params);
  return call.Return(AddSet(node, graph, dependencies, count, node_params));
}

SIMGPU_EXPORT Result cuGraphAddEmptyNode(void** node, void* graph, void* const* dependencies, size_t count) {
  const struct {
    void** node;
    void* graph;
    void* const* dependencies;
    size_t count;
  } params{node, graph, dependencies, count};
  ApiCall call(kCall_cuGraphAddEmptyNode, "cuGraphAddEmptyNode", &params);
  Node* made = nullptr;
  return call.Return(Add(node, graph, dependencies, count, kEmptyNode, &made));
}

SIMGPU_EXPORT Result cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const auto* wanted = As<Graph>(graph);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (count == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  const size_t all = wanted->nodes.size();
  if (nodes != nullptr)
    for (size_t i = 0; i < std::min(*count, all); ++i) nodes[i] = wanted->nodes[i].get();
  *count = nodes == nullptr ? all : std::min(*count, all);
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuGraphNodeGetType(void* node, uint32_t* type) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const auto* wanted = As<Node>(node);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (type == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *type = wanted->type;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuStreamBeginCapture_v2(void* stream, uint32_t mode) {
  const struct {
    void* stream;
    uint32_t mode;
  } params{stream, mode};
  ApiCall call(kCall_cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2", &params);
  return call.Return(BeginCapture(stream));
}

SIMGPU_EXPORT Result cuStreamEndCapture(void* stream, void** graph) {
  const struct {
    void* stream;
    void** graph;
  } params{stream, graph};
  ApiCall call(kCall_cuStreamEndCapture, "cuStreamEndCapture", &params);
  return call.Return(EndCapture(stream, graph));
}

SIMGPU_EXPORT Result cuStreamIsCapturing(void* stream, uint32_t* status) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Stream* wanted = StreamOf(stream);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (status == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *status = wanted->capture != nullptr ? GPUSONDE_CU_CAPTURE_ACTIVE : GPUSONDE_CU_CAPTURE_NONE;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  const struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } params{exec, graph, flags};
  ApiCall call(kCall_cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", &params);
  return call.Return(InstantiateInto(exec, graph));
}

SIMGPU_EXPORT Result cuGraphInstantiateWithParams(void** exec, void* graph, void* instantiate_params) {
  const struct {
    void** exec;
    void* graph;
    void* instantiate_params;
  } params{exec, graph, instantiate_params};
  ApiCall call(kCall_cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", &params);
  return call.Return(InstantiateInto(exec, graph));
}

// Has nothing to do: an executable graph is uploaded when it is instantiated.
SIMGPU_EXPORT Result cuGraphUpload(void* exec, void* stream) {
  const struct {
    void* exec;
    void* stream;
  } params{exec, stream};
  ApiCall call(kCall_cuGraphUpload, "cuGraphUpload", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  return call.Return(As<GraphExec>(exec) == nullptr ? GPUSONDE_CU_ERROR_INVALID_HANDLE : GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuGraphLaunch(void* exec, void* stream) {
  const struct {
    void* exec;
    void* stream;
  } params{exec, stream};
  ApiCall call(kCall_cuGraphLaunch, "cuGraphLaunch", &params);
  return call.Return(LaunchGraph(exec, stream));
}

SIMGPU_EXPORT Result cuGraphExecDestroy(void* exec) {
  const struct {
    void* exec;
  } params{exec};
  ApiCall call(kCall_cuGraphExecDestroy, "cuGraphExecDestroy", &params);
  return call.Return(DestroyExec(exec));
}
