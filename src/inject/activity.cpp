// SPDX-License-Identifier: Apache-2.0
#include "inject/activity.h"

#include <string.h>

#include "inject/buffer_pool.h"
#include "inject/calls.h"
#include "inject/detach.h"
#include "inject/devices.h"
#include "inject/launch_names.h"
#include "inject/libc.h"
#include "inject/names.h"
#include "inject/probes.h"
#include "inject/sink.h"
#include "inject/totals.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

// Which device a context is on, as seen in activity records.
struct ContextDevice {
  uint32_t context;
  uint32_t device;
};
// A consumer stays attached to the snapshot probe until it has read a snapshot, which may take it longer than
// one delivery of records: no more than one snapshot in this time.
constexpr uint64_t kSnapshotIntervalNs = 100'000'000;
constexpr size_t kContexts = 256;
// How far CUPTI's times may be off.
constexpr uint64_t kClockErrorNs = 1'000'000'000;
constexpr uint32_t kMaxDevices = 64;

// Guards the session's state, which is everything below.
Mutex g_session_mutex;
uint32_t g_unloads_known = 0;
const Cupti* g_cupti = nullptr;
uint32_t g_session = 0;
constinit Batch g_state(GPUSONDE_GPU_STATE, true);
constinit Batch g_records(GPUSONDE_GPU_RECORDS, true, &g_state);
constinit Names g_names;
constinit Totals g_totals;
constinit StepMarks g_marks;
ContextDevice g_contexts[kContexts];
uint64_t g_devices_sent = 0;  // bit per ordinal
uint64_t g_drops_sent[GPUSONDE_GPU_DROP_REASONS];
uint64_t g_session_begin_ns = 0;  // 0: between sessions
uint64_t g_delivered_ns = 0;      // when records were last delivered
uint64_t g_drained_ns = 0;        // when the buffer that is read now was taken
uint64_t g_snapshot_ns = 0;       // when the last snapshot was sent
constinit Batch g_snapshot(GPUSONDE_GPU_SNAPSHOT, false);

uint64_t g_flush_begin_ns = 0;  // of the last flush
uint64_t g_flush_end_ns = 0;

uint64_t g_record_count = 0;
uint64_t g_cost_ns = 0;

void NoteContext(uint32_t context, uint32_t device) {
  g_contexts[context % kContexts] = {context + 1, device};
}

uint32_t DeviceOf(uint32_t context) {
  const ContextDevice& known = g_contexts[context % kContexts];
  return known.context == context + 1 ? known.device : GPUSONDE_GPU_NO_DEVICE;
}

void NoteDevice(uint32_t device, uint32_t context, bool own_thread) {
  NoteContext(context, device);
  if (device >= kMaxDevices || !own_thread || (g_devices_sent >> device & 1) != 0) return;
  g_devices_sent |= uint64_t{1} << device;
  SendDevice(device, g_session, g_state);
}

template <class Record>
Record* AddTo(Batch& batch, uint16_t type) {
  return static_cast<Record*>(batch.Add(g_session, type, sizeof(Record)));
}

template <class Record>
Record* Add(uint16_t type) {
  return AddTo<Record>(g_records, type);
}

void SendDrops(const uint64_t (&drops)[GPUSONDE_GPU_DROP_REASONS], Batch& out) {
  auto* record = AddTo<gpusonde_gpu_drops>(out, GPUSONDE_GPU_DROPS);
  memcpy(record->counts, drops, sizeof drops);
}

// Repeats the devices, names and totals that a new consumer needs to interpret the records that follow.
void SendSnapshot() {
  auto* begin = AddTo<gpusonde_gpu_snapshot_begin>(g_snapshot, GPUSONDE_GPU_SNAPSHOT_BEGIN);
  begin->cupti_version = g_cupti->version;
  begin->begin_ns = g_session_begin_ns;
  begin->since_ns = g_delivered_ns;
  for (uint32_t device = 0; device < kMaxDevices; ++device)
    if ((g_devices_sent >> device & 1) != 0) SendDevice(device, g_session, g_snapshot);
  g_names.Resend(g_session, g_snapshot);
  AddTo<gpusonde_gpu_snapshot_end>(g_snapshot, GPUSONDE_GPU_SNAPSHOT_END);
  g_totals.Resend(g_session, g_snapshot);
  uint64_t drops[GPUSONDE_GPU_DROP_REASONS];
  CopyDrops(drops);
  SendDrops(drops, g_snapshot);
  g_snapshot.Flush();
}

struct Times {
  uint64_t start_ns;
  uint64_t end_ns;
};

// None (0 and 0) if they can't be of this session: some versions of CUPTI return the first records after its
// clock was set again in another clock (pytorch/pytorch#192021).
Times InSession(uint64_t start_ns, uint64_t end_ns) {
  const bool can_be =
      start_ns + kClockErrorNs >= g_session_begin_ns && end_ns <= g_drained_ns + kClockErrorNs;
  return can_be ? Times{start_ns, end_ns} : Times{0, 0};
}

uint32_t NameOf(const gpusonde_cupti_kernel& kernel) {
  if (g_unloads_known != 0)
    if (const auto launched = InternLaunch(kernel.correlation_id, g_names, g_session, g_state))
      return *launched;
  return g_names.Intern(kernel.name, g_session, g_state);
}

void Ingest(const gpusonde_cupti_kernel& kernel, bool own_thread) {
  const Times times = InSession(kernel.start, kernel.end);
  NoteDevice(kernel.device_id, kernel.context_id, own_thread);
  const uint32_t name = NameOf(kernel);
  g_totals.Add(GPUSONDE_GPU_KERNEL, kernel.device_id, name, times.start_ns, times.end_ns, 0);
  // A graph's kernels are numbered when it is instantiated, so each launch of it has the same numbers.
  if (kernel.graph_node_id == 0)
    g_marks.Add(kernel.context_id, name, kernel.grid_id, times.start_ns);
  else
    NoteGraphs();
  auto* record = Add<gpusonde_gpu_kernel>(GPUSONDE_GPU_KERNEL);
  record->correlation = kernel.correlation_id;
  record->start_ns = times.start_ns;
  record->end_ns = times.end_ns;
  record->name = name;
  record->device = kernel.device_id;
  record->context = kernel.context_id;
  record->stream = kernel.stream_id;
  record->grid_x = static_cast<uint32_t>(kernel.grid_x);
  record->grid_y = static_cast<uint32_t>(kernel.grid_y);
  record->grid_z = static_cast<uint32_t>(kernel.grid_z);
  record->block_x = static_cast<uint16_t>(kernel.block_x);  // at most 1024 (CUDA C++ Programming Guide, 17.2)
  record->block_y = static_cast<uint16_t>(kernel.block_y);
  record->block_z = static_cast<uint16_t>(kernel.block_z);
  record->registers = kernel.registers_per_thread;
  record->static_shared_bytes = static_cast<uint32_t>(kernel.static_shared_memory);
  record->dynamic_shared_bytes = static_cast<uint32_t>(kernel.dynamic_shared_memory);
  record->graph = kernel.graph_id;
  record->graph_node = kernel.graph_node_id;
}

// Copies within a context and between two contexts have the same fields at different offsets.
template <class Copy>
void IngestCopy(const Copy& copy, bool own_thread) {
  const Times times = InSession(copy.start, copy.end);
  NoteDevice(copy.device_id, copy.context_id, own_thread);
  g_totals.Add(GPUSONDE_GPU_MEMCPY, copy.device_id, copy.copy_kind, times.start_ns, times.end_ns, copy.bytes);
  auto* record = Add<gpusonde_gpu_memcpy>(GPUSONDE_GPU_MEMCPY);
  record->correlation = copy.correlation_id;
  record->start_ns = times.start_ns;
  record->end_ns = times.end_ns;
  record->bytes = copy.bytes;
  record->device = copy.device_id;
  record->context = copy.context_id;
  record->stream = copy.stream_id;
  record->copy_kind = copy.copy_kind;
  record->source_kind = copy.source_kind;
  record->target_kind = copy.target_kind;
  record->asynchronous = (copy.flags & GPUSONDE_CUPTI_FLAG_ASYNC) != 0;
  record->graph_node = copy.graph_node_id;
}

void Ingest(const gpusonde_cupti_memset& set, bool own_thread) {
  const Times times = InSession(set.start, set.end);
  NoteDevice(set.device_id, set.context_id, own_thread);
  g_totals.Add(GPUSONDE_GPU_MEMSET, set.device_id, 0, times.start_ns, times.end_ns, set.bytes);
  auto* record = Add<gpusonde_gpu_memset>(GPUSONDE_GPU_MEMSET);
  record->correlation = set.correlation_id;
  record->start_ns = times.start_ns;
  record->end_ns = times.end_ns;
  record->bytes = set.bytes;
  record->device = set.device_id;
  record->context = set.context_id;
  record->stream = set.stream_id;
  record->graph_node = set.graph_node_id;
}

void Ingest(const gpusonde_cupti_synchronization& sync) {
  const Times times = InSession(sync.start, sync.end);
  const uint32_t device = DeviceOf(sync.context_id);
  g_totals.Add(GPUSONDE_GPU_SYNC, device, sync.type, times.start_ns, times.end_ns, 0);
  auto* record = Add<gpusonde_gpu_sync>(GPUSONDE_GPU_SYNC);
  record->correlation = sync.correlation_id;
  record->start_ns = times.start_ns;
  record->end_ns = times.end_ns;
  record->device = device;
  record->context = sync.context_id;
  record->stream = sync.stream_id;
  record->kind = sync.type;
}

// CUPTI measures by the clock. On a busy machine most of that is time in which the thread waits for a CPU,
// which costs the program nothing; the CPU time of a flush of ours is known.
void Ingest(const gpusonde_cupti_overhead& overhead) {
  if (overhead.overhead_kind < GPUSONDE_CUPTI_OVERHEAD_BUFFER_FLUSH || overhead.end <= overhead.start) return;
  const bool is_counted = overhead.start >= g_flush_begin_ns && overhead.end <= g_flush_end_ns;
  if (!is_counted) g_cost_ns += overhead.end - overhead.start;
}

void Ingest(const void* record, bool own_thread) {
  switch (*static_cast<const uint32_t*>(record)) {
    case GPUSONDE_CUPTI_KIND_KERNEL:
    case GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL:
      return Ingest(*static_cast<const gpusonde_cupti_kernel*>(record), own_thread);
    case GPUSONDE_CUPTI_KIND_MEMCPY:
      return IngestCopy(*static_cast<const gpusonde_cupti_memcpy*>(record), own_thread);
    case GPUSONDE_CUPTI_KIND_MEMCPY2:
      return IngestCopy(*static_cast<const gpusonde_cupti_memcpy_peer*>(record), own_thread);
    case GPUSONDE_CUPTI_KIND_MEMSET:
      return Ingest(*static_cast<const gpusonde_cupti_memset*>(record), own_thread);
    case GPUSONDE_CUPTI_KIND_SYNCHRONIZATION:
      return Ingest(*static_cast<const gpusonde_cupti_synchronization*>(record));
    case GPUSONDE_CUPTI_KIND_OVERHEAD:
      return Ingest(*static_cast<const gpusonde_cupti_overhead*>(record));
    default:
      CountDrop(GPUSONDE_GPU_DROP_KIND);
  }
}

void IngestBuffer(const Buffer& buffer, bool own_thread) {
  g_drained_ns = NowNs();
  const uint32_t unloads = Unloads();
  if (unloads != g_unloads_known) g_names.ForgetPointers();
  g_unloads_known = unloads;
  if (buffer.valid_bytes == 0) return;
  void* record = nullptr;
  for (;;) {
    const gpusonde_cupti_result result = g_cupti->get_next_record(buffer.bytes, buffer.valid_bytes, &record);
    if (result == GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (result != GPUSONDE_CUPTI_SUCCESS) return CountDrop(GPUSONDE_GPU_DROP_CUPTI);
    Ingest(record, own_thread);
    ++g_record_count;
  }
}

}  // namespace

void BeginSession(const Cupti& cupti, uint32_t session, bool finalized) {
  BeginBuffers(cupti, finalized);
  const Locked locked(g_session_mutex);
  g_cupti = &cupti;
  g_session = session;
  g_totals.Clear();
  g_names.ForgetPointers();  // modules may have been unloaded since the last session
  g_devices_sent = 0;
  memset(g_contexts, 0, sizeof g_contexts);
  auto* begin = static_cast<gpusonde_gpu_session_begin*>(
      g_state.Add(session, GPUSONDE_GPU_SESSION_BEGIN, sizeof(gpusonde_gpu_session_begin)));
  begin->cupti_version = cupti.version;
  begin->begin_ns = g_session_begin_ns = g_delivered_ns = NowNs();
  g_records.Flush();
}

// Without the lock, which a thread that completes a buffer may need.
void FlushBuffers(const Cupti& cupti, uint32_t flags) {
  const uint64_t begin_ns = NowNs(), before = ThreadCpuNs();
  cupti.flush_all(flags);
  const Locked locked(g_session_mutex);
  g_flush_begin_ns = begin_ns;
  g_flush_end_ns = NowNs();
  g_cost_ns += ThreadCpuNs() - before;
}

void DrainBuffers(bool own_thread) {
  const Locked locked(g_session_mutex);
  if (g_cupti == nullptr) return;
  const uint64_t before = ThreadCpuNs();
  const uint64_t now = NowNs();
  if (own_thread && g_session_begin_ns != 0 && ProbeAttached(GPUSONDE_GPU_SNAPSHOT) &&
      now - g_snapshot_ns > kSnapshotIntervalNs) {
    g_snapshot_ns = now;
    SendSnapshot();
  }
  g_delivered_ns = now;
  while (Buffer* buffer = PopWaitingBuffer()) {
    IngestBuffer(*buffer, own_thread);
    ReturnBuffer(buffer);
  }
  g_records.Flush();
  g_cost_ns += ThreadCpuNs() - before;
}

void SendTotals() {
  const Locked locked(g_session_mutex);
  if (g_cupti == nullptr) return;
  size_t dropped = 0;
  if (g_cupti->get_dropped(nullptr, 0, &dropped) == GPUSONDE_CUPTI_SUCCESS && dropped != 0)
    CountDrop(GPUSONDE_GPU_DROP_CUPTI, dropped);
  BeginTimes();
  g_totals.Send(g_session, g_state, [](uint32_t of, uint32_t key, uint64_t time_ns) {
    if (of == GPUSONDE_GPU_KERNEL) AddTime(g_names.HashOf(key), time_ns);
  });
  EndTimes();
  uint64_t drops[GPUSONDE_GPU_DROP_REASONS];
  CopyDrops(drops);
  if (memcmp(drops, g_drops_sent, sizeof drops) != 0) {
    SendDrops(drops, g_state);
    memcpy(g_drops_sent, drops, sizeof drops);
  }
  g_records.Flush();
}

void EndSession(uint32_t reason) {
  SendTotals();
  const Locked locked(g_session_mutex);
  auto* end = static_cast<gpusonde_gpu_session_end*>(
      g_state.Add(g_session, GPUSONDE_GPU_SESSION_END, sizeof(gpusonde_gpu_session_end)));
  end->reason = reason;
  end->end_ns = NowNs();
  g_records.Flush();
  g_session_begin_ns = 0;
}

void BeginMarks(uint64_t now_ns, uint64_t length_ns) {
  const Locked locked(g_session_mutex);
  g_marks.BeginWindow(now_ns, length_ns);
}

StepMarks::Window EndMarks() {
  const Locked locked(g_session_mutex);
  return g_marks.EndWindow();
}

void SendOverhead(double budget, const Governor::Use& use, const CostEstimate::Interval& estimate) {
  const auto ppm = [](double share) {
    return static_cast<int32_t>(share * GPUSONDE_GPU_PPM + (share < 0 ? -0.5 : 0.5));
  };
  const Locked locked(g_session_mutex);
  auto* record = AddTo<gpusonde_gpu_overhead>(g_state, GPUSONDE_GPU_OVERHEAD);
  record->pairs = estimate.pairs;
  record->time_ns = NowNs();
  record->budget = static_cast<uint32_t>(ppm(budget));
  record->spent = static_cast<uint32_t>(ppm(use.spent));
  record->measured = static_cast<uint32_t>(ppm(use.measured));
  record->known = estimate.known() ? 1 : 0;
  record->cost = ppm(estimate.cost);
  record->cost_low = ppm(estimate.low);
  record->cost_high = ppm(estimate.high);
  g_records.Flush();
}

void SendForeignUser(const char* holder, uint64_t until_ns) {
  const Locked locked(g_session_mutex);
  auto* record =
      static_cast<gpusonde_gpu_foreign*>(g_state.Add(0, GPUSONDE_GPU_FOREIGN, sizeof(gpusonde_gpu_foreign)));
  record->until_ns = until_ns;
  strncpy(record->holder, holder, sizeof record->holder - 1);
  g_records.Flush();
}

Progress ActivityProgress() {
  const Locked locked(g_session_mutex);
  return {g_record_count, g_cost_ns};
}

}  // namespace gpusonde::inject
