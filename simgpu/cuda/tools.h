// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

// The interface between our libraries. Only libcuda.so.1 has state: libcudart and libcupti get this table
// from it through cuGetExportTable, as NVIDIA's own libraries do.
inline constexpr unsigned char kToolsTableId[16] = {'s', 'i', 'm', 'g', 'p', 'u', '-', 't',
                                                    'o', 'o', 'l', 's', '-', 'v', '1', '\0'};

// One call into the driver or runtime API, at its entry and again at its exit.
struct ApiEvent {
  uint32_t domain;  // CUpti_CallbackDomain
  uint32_t site;    // CUpti_ApiCallbackSite
  uint32_t callback_id;
  const char* function;
  const void* params;
  int32_t* result;     // at the exit
  const char* symbol;  // launches
  void* context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation_id;
  int64_t enter_ns;  // CLOCK_MONOTONIC
};

enum class OperationKind : uint8_t { kKernel, kMemcpy, kMemset, kSync, kGraph };

// An operation that a call submitted to a device (or waited for). Times are CLOCK_MONOTONIC, possibly in the
// future.
struct Operation {
  OperationKind kind;
  uint8_t copy_kind;  // CUpti_ActivityMemcpyKind
  uint8_t source_kind;
  uint8_t target_kind;
  bool async;
  uint32_t sync_kind;  // CUpti_ActivitySynchronizationType
  uint32_t event_id;
  uint32_t correlation_id;
  uint32_t device;
  uint32_t context_id;
  uint32_t stream_id;
  int64_t submitted_ns;
  int64_t start_ns;
  int64_t end_ns;
  int64_t bytes;
  uint32_t value;     // memsets
  uint32_t graph_id;  // 0 outside graphs
  uint64_t graph_node_id;
  const char* name;      // kernels: mangled
  const void* function;  // kernels; another one may be at its address when its module was unloaded
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  // Kernels: counts up by one in each context, whether or not a tool is attached. A graph's are numbered when
  // it is instantiated.
  int64_t grid_id;
};

// An event of an object; the members that don't apply to `id` are null.
struct ResourceEvent {
  uint32_t id;  // CUpti_CallbackIdResource
  void* context;
  void* stream;
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  uint32_t node_type;
  void* dependency;
  void* graph_exec;
  uint32_t module_id;
  const void* image;
  size_t image_bytes;
};

// The callbacks of a tool (libcupti), called on the thread that makes the CUDA call.
struct ToolCallbacks {
  void (*api)(ApiEvent& event);
  void (*operation)(const Operation& operation);
  void (*resource)(const ResourceEvent& event);
  void (*synchronized)(void* context, void* stream);  // stream null: the context
  bool (*graph_trace)();                              // whether a graph is reported as one operation
};

struct ToolsTable {
  size_t size;
  // One tool at a time; false if another is attached. A tool is never freed.
  bool (*attach)(const ToolCallbacks* tool);
  void (*detach)(const ToolCallbacks* tool);
  bool (*attached)();
  // Whether a module is loaded already: enabling kernel records is slow then.
  bool (*any_module)();

  // Bracket a runtime call: the driver calls within it share its correlation id. Each enter needs a leave.
  void (*enter)(ApiEvent* event);
  void (*leave)(ApiEvent* event, int32_t result);

  // Ids of objects; false for an invalid handle.
  bool (*context_id)(void* context, uint32_t* id);
  bool (*device_of)(void* context, uint32_t* device);
  bool (*stream_id)(void* context, void* stream, uint32_t* id);
  bool (*graph_id)(void* graph, uint32_t* id);
  bool (*graph_exec_id)(void* exec, uint32_t* id);
  bool (*node_id)(void* node, uint64_t* id);
};

using GetExportTable = int32_t(const void** table, const void* id);

}  // namespace simgpu
