// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <algorithm>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

void NotifyStream(uint32_t id, Stream* stream) {
  ResourceEvent event{};
  event.id = id;
  event.context = &stream->context;
  event.stream = stream;
  NotifyResource(event);
}

Result MakeStream(void** handle, unsigned flags) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  if (handle == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  Driver& driver = TheDriver();
  Context& context = *CurrentContext();
  Stream* stream = nullptr;
  {
    const std::lock_guard lock(driver.mutex);
    const bool blocking = (flags & GPUSONDE_CU_STREAM_NON_BLOCKING) == 0;
    stream =
        context.streams.emplace_back(std::make_unique<Stream>(context, driver.next_stream++, blocking)).get();
  }
  *handle = stream;
  NotifyStream(GPUSONDE_CUPTI_RESOURCE_STREAM_CREATED, stream);
  return GPUSONDE_CU_SUCCESS;
}

// Queued operations still run; only a synchronisation of the context waits for them.
Result DestroyStream(void* handle) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* stream = As<Stream>(handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  NotifyStream(GPUSONDE_CUPTI_RESOURCE_STREAM_DESTROY_STARTING, stream);
  const std::lock_guard lock(TheDriver().mutex);
  Context& context = stream->context;
  if (stream->blocking) Occupy(context.legacy, stream->tail_ns);
  std::erase_if(context.streams, [&](const auto& owned) { return owned.get() == stream; });
  return GPUSONDE_CU_SUCCESS;
}

Result SynchronizeStream(void* handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  int64_t tail_ns = 0;
  {
    const std::lock_guard lock(TheDriver().mutex);
    tail_ns = ReadyNs(*stream);
  }
  Synchronize(stream->context, stream, GPUSONDE_CUPTI_SYNC_STREAM, GPUSONDE_CUPTI_INVALID_ID, tail_ns);
  return GPUSONDE_CU_SUCCESS;
}

Result Record(void* event_handle, void* stream_handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  auto* event = As<Event>(event_handle);
  Stream* stream = StreamOf(stream_handle);
  if (event == nullptr || stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(TheDriver().mutex);
  event->recorded = true;
  event->stream_id = stream->id;
  event->capture = stream->capture;
  if (stream->capture != nullptr)
    event->nodes = stream->last_captured;
  else
    event->time_ns = std::max(ReadyNs(*stream), NowNs());
  return GPUSONDE_CU_SUCCESS;
}

// Adds `stream` to the capture in which the event was recorded.
void Join(Stream& stream, const Event& event) {
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
  }
  for (Node* node : event.nodes)
    if (std::find(stream.last_captured.begin(), stream.last_captured.end(), node) ==
        stream.last_captured.end())
      stream.last_captured.push_back(node);
}

Result Wait(void* stream_handle, void* event_handle) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Stream* stream = StreamOf(stream_handle);
  const auto* event = As<Event>(event_handle);
  if (event == nullptr || stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (!event->recorded) return GPUSONDE_CU_SUCCESS;
  {
    const std::lock_guard lock(TheDriver().mutex);
    if (event->capture != nullptr) {
      Join(*stream, *event);
      return GPUSONDE_CU_SUCCESS;
    }
    Occupy(*stream, event->time_ns);
  }
  Synchronize(stream->context, stream, GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT, event->id, 0);
  return GPUSONDE_CU_SUCCESS;
}

Result ElapsedMs(float* elapsed_ms, void* from_handle, void* to_handle) {
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const auto* from = As<Event>(from_handle);
  const auto* to = As<Event>(to_handle);
  if (elapsed_ms == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  if (from == nullptr || to == nullptr || !from->recorded || !to->recorded)
    return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (NowNs() < std::max(from->time_ns, to->time_ns)) return GPUSONDE_CU_ERROR_NOT_READY;
  *elapsed_ms = 1e-6F * static_cast<float>(to->time_ns - from->time_ns);
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace
}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuStreamCreate(void** stream, unsigned flags) {
  const struct {
    void** stream;
    unsigned flags;
  } params{stream, flags};
  ApiCall call(kCall_cuStreamCreate, "cuStreamCreate", &params);
  return call.Return(MakeStream(stream, flags));
}

// Priorities are accepted without effect: the simulated timeline never moves an operation once it is placed.
SIMGPU_EXPORT Result cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  const struct {
    void** stream;
    unsigned flags;
    int priority;
  } params{stream, flags, priority};
  ApiCall call(kCall_cuStreamCreateWithPriority, "cuStreamCreateWithPriority", &params);
  return call.Return(MakeStream(stream, flags));
}

SIMGPU_EXPORT Result cuStreamDestroy_v2(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  ApiCall call(kCall_cuStreamDestroy_v2, "cuStreamDestroy_v2", &params);
  return call.Return(DestroyStream(stream));
}

SIMGPU_EXPORT Result cuStreamSynchronize(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  ApiCall call(kCall_cuStreamSynchronize, "cuStreamSynchronize", &params);
  return call.Return(SynchronizeStream(stream));
}

SIMGPU_EXPORT Result cuStreamQuery(void* stream) {
  const struct {
    void* stream;
  } params{stream};
  ApiCall call(kCall_cuStreamQuery, "cuStreamQuery", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  const Stream* wanted = StreamOf(stream);
  if (wanted == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_HANDLE);
  const std::lock_guard lock(TheDriver().mutex);
  return call.Return(simgpu::NowNs() < ReadyNs(*wanted) ? GPUSONDE_CU_ERROR_NOT_READY : GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuStreamGetCtx(void* stream, void** context) {
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  const Stream* wanted = StreamOf(stream);
  if (wanted == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (context == nullptr) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  *context = &wanted->context;
  return GPUSONDE_CU_SUCCESS;
}

SIMGPU_EXPORT Result cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  const struct {
    void* stream;
    void* event;
    unsigned flags;
  } params{stream, event, flags};
  ApiCall call(kCall_cuStreamWaitEvent, "cuStreamWaitEvent", &params);
  return call.Return(Wait(stream, event));
}

SIMGPU_EXPORT Result cuEventCreate(void** event, unsigned flags) {
  const struct {
    void** event;
    unsigned flags;
  } params{event, flags};
  ApiCall call(kCall_cuEventCreate, "cuEventCreate", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (event == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  const std::lock_guard lock(TheDriver().mutex);
  *event = new Event(TheDriver().next_event++);
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuEventDestroy_v2(void* event) {
  const struct {
    void* event;
  } params{event};
  ApiCall call(kCall_cuEventDestroy_v2, "cuEventDestroy_v2", &params);
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  auto* wanted = As<Event>(event);
  if (wanted == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_HANDLE);
  delete wanted;
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuEventRecord(void* event, void* stream) {
  const struct {
    void* event;
    void* stream;
  } params{event, stream};
  ApiCall call(kCall_cuEventRecord, "cuEventRecord", &params);
  return call.Return(Record(event, stream));
}

SIMGPU_EXPORT Result cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  const struct {
    void* event;
    void* stream;
    unsigned flags;
  } params{event, stream, flags};
  ApiCall call(kCall_cuEventRecordWithFlags, "cuEventRecordWithFlags", &params);
  return call.Return(Record(event, stream));
}

SIMGPU_EXPORT Result cuEventQuery(void* event) {
  const struct {
    void* event;
  } params{event};
  ApiCall call(kCall_cuEventQuery, "cuEventQuery", &params);
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  const auto* wanted = As<Event>(event);
  if (wanted == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_HANDLE);
  return call.Return(wanted->recorded && simgpu::NowNs() < wanted->time_ns ? GPUSONDE_CU_ERROR_NOT_READY
                                                                           : GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuEventSynchronize(void* event) {
  const struct {
    void* event;
  } params{event};
  ApiCall call(kCall_cuEventSynchronize, "cuEventSynchronize", &params);
  const Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  const auto* wanted = As<Event>(event);
  if (wanted == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_HANDLE);
  Synchronize(*CurrentContext(), nullptr, GPUSONDE_CUPTI_SYNC_EVENT, wanted->id, wanted->time_ns);
  return call.Return(GPUSONDE_CU_SUCCESS);
}

SIMGPU_EXPORT Result cuEventElapsedTime(float* elapsed_ms, void* from, void* to) {
  return ElapsedMs(elapsed_ms, from, to);
}

SIMGPU_EXPORT Result cuEventElapsedTime_v2(float* elapsed_ms, void* from, void* to) {
  return ElapsedMs(elapsed_ms, from, to);
}
