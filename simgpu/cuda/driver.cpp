// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cuda/driver.h"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/current.h"
#include "wire/nvidia/cuda.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

// A sleeping thread wakes up to this late (timer slack and scheduling), so the last part of a wait is a spin.
constexpr int64_t kWakeUpNs = 60'000;

// Polling period while a device's queue is full.
constexpr int64_t kLongestWaitNs = 100'000'000;

Operation MakeOperation(OperationKind kind, const Stream& stream, const Placed& placed,
                        const GraphPlace& graph) {
  Operation operation{};
  operation.kind = kind;
  operation.correlation_id = CorrelationId();
  operation.device = stream.context.device;
  operation.context_id = stream.context.id;
  operation.stream_id = stream.id;
  operation.submitted_ns = NowNs();
  operation.start_ns = placed.start_ns;
  operation.end_ns = placed.end_ns;
  operation.graph_id = graph.graph_id;
  operation.graph_node_id = graph.node_id;
  return operation;
}

void Notify(const Operation& operation, bool silent) {
  Log(operation);
  const ToolCallbacks* tool = AttachedTool();
  if (tool != nullptr && !silent) tool->operation(operation);
}

// Calls `place` under both locks until there is room in the queue. A graph's nodes have their own ready_ns
// and don't change the stream, which the graph occupies as a whole.
template <class Place>
Placed Submit(Stream& stream, int64_t ready_ns, const GraphPlace& graph, Place place) {
  Driver& driver = TheDriver();
  for (;;) {
    int64_t room_ns = 0;
    {
      const std::lock_guard lock(driver.mutex);
      if (graph.graph_id == 0) ready_ns = std::max(ready_ns, ReadyNs(stream));
      Machine::Locked device(*driver.machine, stream.context.device);
      const int64_t now_ns = NowNs();
      const std::optional<Device::Span> span = place(*device, now_ns, ready_ns);
      if (span.has_value()) {
        if (graph.graph_id == 0) Occupy(stream, span->end_ns);
        return {span->start_ns, span->end_ns};
      }
      // The queue may be full of work of a process that has died.
      ForgetTheDead(*device, now_ns);
      room_ns = std::min(device->next_end().value_or(now_ns), now_ns + kLongestWaitNs);
    }
    WaitUntil(room_ns);
  }
}

}  // namespace

Driver& TheDriver() {
  // Never destroyed: other threads may still use it when the process ends.
  static Driver& driver = *new Driver;
  return driver;
}

Result Ready() {
  const Driver& driver = TheDriver();
  return driver.initialised && !driver.forked ? GPUSONDE_CU_SUCCESS : GPUSONDE_CU_ERROR_NOT_INITIALIZED;
}

Result ReadyWithContext() {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  return CurrentContext() != nullptr ? GPUSONDE_CU_SUCCESS : GPUSONDE_CU_ERROR_INVALID_CONTEXT;
}

Stream* StreamOf(void* handle) {
  Context* context = CurrentContext();
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value > GPUSONDE_CU_STREAM_PER_THREAD) return As<Stream>(handle);
  if (context == nullptr) return nullptr;
  if (value != GPUSONDE_CU_STREAM_PER_THREAD) return &context->legacy;
  static thread_local std::map<Context*, Stream*> own;
  Stream*& stream = own[context];
  if (stream == nullptr) {
    Driver& driver = TheDriver();
    const std::lock_guard lock(driver.mutex);
    stream =
        context->streams.emplace_back(std::make_unique<Stream>(*context, driver.next_stream++, true)).get();
  }
  return stream;
}

int64_t ReadyNs(const Stream& stream) {
  if (!stream.blocking) return stream.tail_ns;
  const Context& context = stream.context;
  int64_t ready_ns = std::max(stream.tail_ns, context.legacy.tail_ns);
  if (&stream == &context.legacy)
    for (const auto& other : context.streams)
      if (other->blocking) ready_ns = std::max(ready_ns, other->tail_ns);
  return ready_ns;
}

void Occupy(Stream& stream, int64_t end_ns) { stream.tail_ns = std::max(stream.tail_ns, end_ns); }

int64_t TailNs(const Context& context) {
  int64_t tail_ns = context.legacy.tail_ns;
  for (const auto& stream : context.streams) tail_ns = std::max(tail_ns, stream->tail_ns);
  return tail_ns;
}

Placed SubmitLaunch(Stream& stream, const Launch& launch, int64_t ready_ns, const GraphPlace& graph) {
  const int64_t blocks = int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const auto threads = static_cast<int32_t>(
      std::min<int64_t>(int64_t{launch.block[0]} * launch.block[1] * launch.block[2], 1024));
  int64_t grid_id = 0;
  const Placed placed = Submit(stream, ready_ns, graph, [&](Device& device, int64_t now_ns, int64_t ready) {
    const auto span =
        device.SubmitKernel(stream.context.slot, now_ns, ready, launch.duration_ns, blocks, threads);
    if (span.has_value()) grid_id = graph.graph_id != 0 ? graph.grid_id : ++stream.context.kernels;
    return span;
  });
  Operation operation = MakeOperation(OperationKind::kKernel, stream, placed, graph);
  operation.grid_id = grid_id;
  operation.name = launch.function->name;
  operation.function = launch.function;
  std::copy_n(launch.grid, 3, operation.grid);
  std::copy_n(launch.block, 3, operation.block);
  operation.shared_bytes = launch.shared_bytes;
  Notify(operation, graph.silent);
  return placed;
}

Placed SubmitTransfer(Stream& stream, const Transfer& transfer, int64_t ready_ns, const GraphPlace& graph) {
  const CopyDirection direction =
      transfer.copy_kind == GPUSONDE_CUPTI_MEMCPY_HTOD   ? CopyDirection::kHostToDevice
      : transfer.copy_kind == GPUSONDE_CUPTI_MEMCPY_DTOH ? CopyDirection::kDeviceToHost
                                                         : CopyDirection::kInside;
  const bool pageable = transfer.source_kind == GPUSONDE_CUPTI_MEMORY_PAGEABLE ||
                        transfer.target_kind == GPUSONDE_CUPTI_MEMORY_PAGEABLE;
  const Placed placed = Submit(stream, ready_ns, graph, [&](Device& device, int64_t now_ns, int64_t ready) {
    return std::optional(
        device.SubmitCopy(stream.context.slot, now_ns, ready, transfer.bytes, direction, pageable));
  });
  Operation operation = MakeOperation(OperationKind::kMemcpy, stream, placed, graph);
  operation.bytes = transfer.bytes;
  operation.copy_kind = transfer.copy_kind;
  operation.source_kind = transfer.source_kind;
  operation.target_kind = transfer.target_kind;
  operation.async = transfer.async;
  Notify(operation, graph.silent);
  return placed;
}

Placed SubmitFill(Stream& stream, const Fill& fill, int64_t ready_ns, const GraphPlace& graph) {
  const Placed placed = Submit(stream, ready_ns, graph, [&](Device& device, int64_t now_ns, int64_t ready) {
    return std::optional(device.SubmitMemset(stream.context.slot, now_ns, ready, fill.bytes));
  });
  Operation operation = MakeOperation(OperationKind::kMemset, stream, placed, graph);
  operation.bytes = fill.bytes;
  operation.value = fill.value;
  operation.async = fill.async;
  operation.target_kind = GPUSONDE_CUPTI_MEMORY_DEVICE;
  Notify(operation, graph.silent);
  return placed;
}

void WaitUntil(int64_t end_ns) {
  const int64_t sleep_until_ns = end_ns - kWakeUpNs;
  if (NowNs() < sleep_until_ns) {
    const timespec until{sleep_until_ns / 1'000'000'000, sleep_until_ns % 1'000'000'000};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }
  while (NowNs() < end_ns) ::sched_yield();
}

void Synchronize(Context& context, Stream* stream, uint32_t sync_kind, uint32_t event_id, int64_t end_ns) {
  Operation operation{};
  operation.kind = OperationKind::kSync;
  operation.sync_kind = sync_kind;
  operation.event_id = event_id;
  operation.correlation_id = CorrelationId();
  operation.device = context.device;
  operation.context_id = context.id;
  operation.stream_id = stream == nullptr ? GPUSONDE_CUPTI_INVALID_ID : stream->id;
  operation.submitted_ns = operation.start_ns = NowNs();
  if (sync_kind != GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT) WaitUntil(end_ns);
  operation.end_ns = NowNs();
  Log(operation);
  const ToolCallbacks* tool = AttachedTool();
  if (tool == nullptr) return;
  tool->operation(operation);
  if (sync_kind == GPUSONDE_CUPTI_SYNC_STREAM || sync_kind == GPUSONDE_CUPTI_SYNC_CONTEXT)
    tool->synchronized(&context, stream);
}

}  // namespace simgpu::cuda
