// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cupti/records.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace simgpu::cupti {
namespace {

// CUpti_ActivityAPI
struct ApiRecord {
  uint32_t kind;
  uint32_t callback_id;
  uint64_t start;
  uint64_t end;
  uint32_t process_id;
  uint32_t thread_id;
  uint32_t correlation_id;
  uint32_t return_value;
};

// The trailing fields that CUPTI 12's records lack.
constexpr size_t kSynchronizationV1Bytes = 40;
constexpr size_t kOverheadV2Bytes = 48;

template <class T>
Record Pack(const T& value, size_t size) {
  static_assert(sizeof(T) <= sizeof(Record::bytes));
  Record record;
  std::memcpy(record.bytes, &value, sizeof value);
  record.size = size;
  return record;
}

Record Kernel(const Operation& operation, uint32_t kind, uint64_t start, uint64_t end) {
  gpusonde_cupti_kernel record{};
  record.kind = kind;
  record.registers_per_thread = 32;
  record.start = start;
  record.end = end;
  record.completed = end;
  record.device_id = operation.device;
  record.context_id = operation.context_id;
  record.stream_id = operation.stream_id;
  record.grid_x = static_cast<int32_t>(operation.grid[0]);
  record.grid_y = static_cast<int32_t>(operation.grid[1]);
  record.grid_z = static_cast<int32_t>(operation.grid[2]);
  record.block_x = static_cast<int32_t>(operation.block[0]);
  record.block_y = static_cast<int32_t>(operation.block[1]);
  record.block_z = static_cast<int32_t>(operation.block[2]);
  record.dynamic_shared_memory = static_cast<int32_t>(operation.shared_bytes);
  record.shared_memory_executed = operation.shared_bytes;
  record.correlation_id = operation.correlation_id;
  record.grid_id = operation.grid_id;
  record.name = operation.name;
  record.graph_node_id = operation.graph_node_id;
  record.graph_id = operation.graph_id;
  return Pack(record, RecordBytes(kind));
}

Record Memcpy(const Operation& operation, uint32_t kind, uint64_t start, uint64_t end) {
  gpusonde_cupti_memcpy record{};
  record.kind = kind;
  record.copy_kind = operation.copy_kind;
  record.source_kind = operation.source_kind;
  record.target_kind = operation.target_kind;
  record.flags = operation.async ? GPUSONDE_CUPTI_FLAG_ASYNC : 0;
  record.bytes = static_cast<uint64_t>(operation.bytes);
  record.start = start;
  record.end = end;
  record.device_id = operation.device;
  record.context_id = operation.context_id;
  record.stream_id = operation.stream_id;
  record.correlation_id = operation.correlation_id;
  record.graph_node_id = operation.graph_node_id;
  record.graph_id = operation.graph_id;
  record.copy_count = kIs13 ? 1 : 0;
  return Pack(record, RecordBytes(kind));
}

Record Memset(const Operation& operation, uint32_t kind, uint64_t start, uint64_t end) {
  gpusonde_cupti_memset record{};
  record.kind = kind;
  record.value = operation.value;
  record.bytes = static_cast<uint64_t>(operation.bytes);
  record.start = start;
  record.end = end;
  record.device_id = operation.device;
  record.context_id = operation.context_id;
  record.stream_id = operation.stream_id;
  record.correlation_id = operation.correlation_id;
  record.flags = operation.async ? GPUSONDE_CUPTI_FLAG_ASYNC : 0;
  record.memory_kind = operation.target_kind;
  record.graph_node_id = operation.graph_node_id;
  record.graph_id = operation.graph_id;
  return Pack(record, RecordBytes(kind));
}

Record Synchronization(const Operation& operation, uint32_t kind, uint64_t start, uint64_t end) {
  gpusonde_cupti_synchronization record{};
  record.kind = kind;
  record.type = operation.sync_kind;
  record.start = start;
  record.end = end;
  record.correlation_id = operation.correlation_id;
  record.context_id = operation.context_id;
  record.stream_id = operation.stream_id;
  record.cuda_event_id = operation.event_id;
  return Pack(record, RecordBytes(kind));
}

Record GraphTrace(const Operation& operation, uint32_t kind, uint64_t start, uint64_t end) {
  gpusonde_cupti_graph_trace record{};
  record.kind = kind;
  record.correlation_id = operation.correlation_id;
  record.start = start;
  record.end = end;
  record.device_id = record.end_device_id = operation.device;
  record.context_id = record.end_context_id = operation.context_id;
  record.graph_id = operation.graph_id;
  record.stream_id = operation.stream_id;
  return Pack(record, RecordBytes(kind));
}

}  // namespace

uint32_t KindOf(const Operation& operation) {
  const auto if_enabled = [](uint32_t kind) -> uint32_t { return KindEnabled(kind) ? kind : 0; };
  switch (operation.kind) {
    case OperationKind::kKernel:
      if (KindEnabled(GPUSONDE_CUPTI_KIND_KERNEL)) return GPUSONDE_CUPTI_KIND_KERNEL;
      return if_enabled(GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL);
    case OperationKind::kMemcpy:
      return if_enabled(GPUSONDE_CUPTI_KIND_MEMCPY);
    case OperationKind::kMemset:
      return if_enabled(GPUSONDE_CUPTI_KIND_MEMSET);
    case OperationKind::kSync:
      return if_enabled(GPUSONDE_CUPTI_KIND_SYNCHRONIZATION);
    case OperationKind::kGraph:
      return if_enabled(GPUSONDE_CUPTI_KIND_GRAPH_TRACE);
  }
  return 0;
}

Record MakeRecord(const Operation& operation, uint32_t kind, bool timed) {
  const bool stale = timed && Chance(TheKnobs().stale);
  const auto to_timestamp = [stale](int64_t time_ns) {
    return stale ? ToRealTime(time_ns) : ToTimestamp(time_ns);
  };
  const uint64_t start = timed ? to_timestamp(operation.start_ns) : 0;
  const uint64_t end = timed ? to_timestamp(operation.end_ns) : 0;
  switch (operation.kind) {
    case OperationKind::kKernel:
      return Kernel(operation, kind, start, end);
    case OperationKind::kMemcpy:
      return Memcpy(operation, kind, start, end);
    case OperationKind::kMemset:
      return Memset(operation, kind, start, end);
    case OperationKind::kSync:
      return Synchronization(operation, kind, start, end);
    case OperationKind::kGraph:
      return GraphTrace(operation, kind, start, end);
  }
  return {};
}

Record MakeApiRecord(const ApiEvent& event, int32_t result, int64_t exit_ns) {
  const bool runtime = event.domain == GPUSONDE_CUPTI_DOMAIN_RUNTIME;
  const ApiRecord record = {
      .kind = static_cast<uint32_t>(runtime ? GPUSONDE_CUPTI_KIND_RUNTIME : GPUSONDE_CUPTI_KIND_DRIVER),
      .callback_id = event.callback_id,
      .start = ToTimestamp(event.enter_ns),
      .end = ToTimestamp(exit_ns),
      .process_id = static_cast<uint32_t>(::getpid()),
      .thread_id = static_cast<uint32_t>(::syscall(SYS_gettid)),
      .correlation_id = event.correlation_id,
      .return_value = static_cast<uint32_t>(result),
  };
  return Pack(record, sizeof record);
}

Record MakeOverheadRecord(uint32_t overhead_kind, int64_t start_ns, int64_t end_ns) {
  gpusonde_cupti_overhead record{};
  record.kind = GPUSONDE_CUPTI_KIND_OVERHEAD;
  record.overhead_kind = overhead_kind;
  record.start = ToTimestamp(start_ns);
  record.end = ToTimestamp(end_ns);
  return Pack(record, RecordBytes(record.kind));
}

size_t RecordBytes(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_CUPTI_KIND_KERNEL:
    case GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL:
      return kIs13 ? sizeof(gpusonde_cupti_kernel) : GPUSONDE_CUPTI_KERNEL9_BYTES;
    case GPUSONDE_CUPTI_KIND_MEMCPY:
      return kIs13 ? sizeof(gpusonde_cupti_memcpy) : GPUSONDE_CUPTI_MEMCPY5_BYTES;
    case GPUSONDE_CUPTI_KIND_MEMSET:
      return sizeof(gpusonde_cupti_memset);
    case GPUSONDE_CUPTI_KIND_SYNCHRONIZATION:
      return kIs13 ? sizeof(gpusonde_cupti_synchronization) : kSynchronizationV1Bytes;
    case GPUSONDE_CUPTI_KIND_OVERHEAD:
      return kIs13 ? sizeof(gpusonde_cupti_overhead) : kOverheadV2Bytes;
    case GPUSONDE_CUPTI_KIND_GRAPH_TRACE:
      return sizeof(gpusonde_cupti_graph_trace);
    case GPUSONDE_CUPTI_KIND_DRIVER:
    case GPUSONDE_CUPTI_KIND_RUNTIME:
      return sizeof(ApiRecord);
    default:
      return 0;
  }
}

}  // namespace simgpu::cupti
