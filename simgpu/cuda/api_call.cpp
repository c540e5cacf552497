// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cuda/api_call.h"

#include <cstring>

#include "simgpu/machine/settings.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

std::atomic<const ToolCallbacks*> attached_tool = nullptr;

// Ids have 32 bits and wrap; 0 means none. The start is configurable so that tests can reach the wrap.
std::atomic<uint32_t>& CorrelationCounter() {
  static std::atomic<uint32_t> counter =
      static_cast<uint32_t>(IntegerSetting("SIMGPU_CORRELATION_START", 0, 0, UINT32_MAX));
  return counter;
}

uint32_t NextCorrelationId() {
  for (;;) {
    const uint32_t id = CorrelationCounter().fetch_add(1, std::memory_order_relaxed) + 1;
    if (id != 0) return id;
  }
}

// This thread's depth in reported calls, and the correlation id of the outermost, which all of them share.
thread_local uint32_t call_depth = 0;
thread_local uint32_t call_id = 0;

void EnterCall(ApiEvent* event) {
  if (call_depth++ == 0) call_id = NextCorrelationId();
  event->correlation_id = call_id;
  event->site = GPUSONDE_CUPTI_API_ENTER;
  event->enter_ns = NowNs();
  Context* context = CurrentContext();
  event->context = context;
  event->context_id = context == nullptr ? 0 : context->id;
  const ToolCallbacks* tool = AttachedTool();
  if (tool != nullptr) tool->api(*event);
}

void LeaveCall(ApiEvent* event, int32_t result) {
  event->site = GPUSONDE_CUPTI_API_EXIT;
  event->result = &result;
  Context* context = CurrentContext();
  event->context = context;
  event->context_id = context == nullptr ? 0 : context->id;
  const ToolCallbacks* tool = AttachedTool();
  if (tool != nullptr) tool->api(*event);
  --call_depth;
}

bool Attach(const ToolCallbacks* tool) {
  const ToolCallbacks* none = nullptr;
  return attached_tool.compare_exchange_strong(none, tool) || none == tool;
}

void Detach(const ToolCallbacks* tool) { attached_tool.compare_exchange_strong(tool, nullptr); }

bool AnyModule() {
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  return driver.modules > 0;
}

template <class T, class Id>
bool IdOf(void* handle, Id* id) {
  const T* object = As<T>(handle);
  if (object == nullptr) return false;
  *id = object->id;
  return true;
}

bool DeviceOf(void* handle, uint32_t* device) {
  const Context* context = As<Context>(handle);
  if (context == nullptr) return false;
  *device = context->device;
  return true;
}

bool StreamId(void* context, void* handle, uint32_t* id) {
  if (handle != nullptr) return IdOf<Stream>(handle, id);
  const Context* in = As<Context>(context);
  if (in == nullptr) return false;
  *id = in->legacy.id;
  return true;
}

constexpr ToolsTable kToolsTable = {
    .size = sizeof(ToolsTable),
    .attach = Attach,
    .detach = Detach,
    .attached = [] { return AttachedTool() != nullptr; },
    .any_module = AnyModule,
    .enter = EnterCall,
    .leave = LeaveCall,
    .context_id = IdOf<Context, uint32_t>,
    .device_of = DeviceOf,
    .stream_id = StreamId,
    .graph_id = IdOf<Graph, uint32_t>,
    .graph_exec_id = IdOf<GraphExec, uint32_t>,
    .node_id = IdOf<Node, uint64_t>,
};

}  // namespace

const ToolCallbacks* AttachedTool() { return attached_tool.load(std::memory_order_acquire); }

uint32_t CorrelationId() { return call_depth > 0 ? call_id : 0; }

void NotifyResource(const ResourceEvent& event) {
  const ToolCallbacks* tool = AttachedTool();
  if (tool != nullptr) tool->resource(event);
}

void ApiCall::Enter(uint32_t callback_id, const char* function, const void* params, const char* symbol) {
  entered_ = true;
  correlation_data_ = 0;
  event_ = {};
  event_.domain = GPUSONDE_CUPTI_DOMAIN_DRIVER;
  event_.callback_id = callback_id;
  event_.function = function;
  event_.params = params;
  event_.symbol = symbol;
  event_.correlation_data = &correlation_data_;
  EnterCall(&event_);
}

void ApiCall::Leave(Result result) { LeaveCall(&event_, result); }

}  // namespace simgpu::cuda

SIMGPU_EXPORT simgpu::cuda::Result cuGetExportTable(const void** table, const void* id) {
  if (table == nullptr || id == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (std::memcmp(id, simgpu::kToolsTableId, sizeof simgpu::kToolsTableId) != 0)
    return GPUSONDE_CU_ERROR_NOT_FOUND;
  *table = &simgpu::cuda::kToolsTable;
  return GPUSONDE_CU_SUCCESS;
}
