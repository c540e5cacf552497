// SPDX-License-Identifier: Apache-2.0
#include "importers/event.h"

namespace gpusonde::importers {

std::string_view Name(CopyKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "htod", "dtoh", "dtod", "ptop", "htoh"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "pageable", "pinned", "device", "managed"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(SyncKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "event", "stream_wait", "stream", "context"};
  return kNames[static_cast<size_t>(kind)];
}

void EventBatch::Flush(EventSink& sink) {
  if (!gpu_details.empty() || !spans.empty() || !syncs.empty())
    sink.Detailed(*this);
  else if (!gpu.empty())
    sink.Gpu(gpu);
  if (!calls.empty()) sink.Api(calls);
  if (!ranges.empty()) sink.Ranges(ranges);
  if (!communication.empty()) sink.Communication(communication);
  if (others != 0) sink.Other(others);
  gpu.clear();
  calls.clear();
  ranges.clear();
  communication.clear();
  gpu_details.clear();
  spans.clear();
  syncs.clear();
  others = 0;
}

}  // namespace gpusonde::importers
