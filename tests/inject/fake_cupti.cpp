// SPDX-License-Identifier: Apache-2.0
#include "fake_cupti.h"

#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "wire/nvidia/cupti.h"

namespace {

struct Fake {
  std::recursive_mutex mutex;
  gpusonde_cupti_callback* callback = nullptr;
  void* user = nullptr;
  std::string holder;
  std::set<uint32_t> kinds;
  std::set<std::pair<uint32_t, uint32_t>> callbacks;
  gpusonde_cupti_buffer_requested* requested = nullptr;
  gpusonde_cupti_buffer_completed* completed = nullptr;
  gpusonde_cupti_timestamp* timestamp = nullptr;
  uint8_t* buffer = nullptr;
  size_t room = 0;
  size_t used = 0;
  size_t dropped = 0;
  uint32_t correlation = 1;
  uint64_t next_node = 100;
  bool drop_times = false;
  int32_t failure = 0;
};
Fake g_fake;
const auto kSubscriber = reinterpret_cast<gpusonde_cupti_subscriber_handle>(&g_fake);

void CompleteBuffer() {
  if (g_fake.buffer != nullptr) g_fake.completed(nullptr, 0, g_fake.buffer, g_fake.room, g_fake.used);
  g_fake.buffer = nullptr;
  g_fake.used = 0;
}

template <class Record>
void Put(Record record) {
  const std::lock_guard lock(g_fake.mutex);
  if (!g_fake.kinds.contains(record.kind)) return;
  if (g_fake.drop_times) record.start = record.end = 0;
  g_fake.drop_times = false;
  if (g_fake.buffer != nullptr && g_fake.used + sizeof record > g_fake.room) CompleteBuffer();
  if (g_fake.buffer == nullptr) {
    size_t most = 0;
    g_fake.requested(&g_fake.buffer, &g_fake.room, &most);
  }
  if (g_fake.buffer == nullptr) {
    ++g_fake.dropped;
    return;
  }
  std::memcpy(g_fake.buffer + g_fake.used, &record, sizeof record);
  g_fake.used += sizeof record;
}

size_t SizeOf(uint32_t kind) {
  switch (kind) {
    case GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL:
      return sizeof(gpusonde_cupti_kernel);
    case GPUSONDE_CUPTI_KIND_MEMCPY:
      return sizeof(gpusonde_cupti_memcpy);
    case GPUSONDE_CUPTI_KIND_MEMSET:
      return sizeof(gpusonde_cupti_memset);
    default:
      return sizeof(gpusonde_cupti_synchronization);
  }
}

void CallBack(uint32_t domain, uint32_t id, const void* data) {
  gpusonde_cupti_callback* callback = nullptr;
  {
    const std::lock_guard lock(g_fake.mutex);
    if (g_fake.callbacks.contains({domain, id})) callback = g_fake.callback;
  }
  if (callback != nullptr) callback(g_fake.user, domain, id, data);
}

// Entry and exit of a call, with `body` between.
template <class Body>
void Call(uint32_t domain, uint32_t id, uint32_t correlation, Body body) {
  uint64_t shared = 0;
  int32_t result = 0;
  gpusonde_cupti_callback_data data{};
  data.site = GPUSONDE_CUPTI_API_ENTER;
  data.correlation_data = &shared;
  data.correlation_id = correlation;
  CallBack(domain, id, &data);
  body();
  data.site = GPUSONDE_CUPTI_API_EXIT;
  data.function_return_value = &result;
  CallBack(domain, id, &data);
}

uint64_t Now() {
  if (g_fake.timestamp != nullptr) return g_fake.timestamp();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t NextCorrelation() {
  const std::lock_guard lock(g_fake.mutex);
  return g_fake.correlation++;
}

gpusonde_cupti_kernel Kernel(const char* name, uint32_t device, uint32_t correlation, uint64_t duration_ns) {
  gpusonde_cupti_kernel kernel{};
  kernel.kind = GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL;
  kernel.registers_per_thread = 40;
  kernel.start = Now();
  kernel.end = kernel.start + duration_ns;
  kernel.device_id = device;
  kernel.context_id = device + 1;
  kernel.stream_id = 7;
  kernel.grid_x = 128;
  kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
  kernel.block_x = 256;
  kernel.correlation_id = correlation;
  kernel.name = name;
  return kernel;
}

constexpr uint32_t kLaunchKernel = 211;  // cudaLaunchKernel_v7000
constexpr uint32_t kCuLaunchKernel = 307;
constexpr uint32_t kMemcpyAsync = 41;
constexpr uint32_t kMemsetAsync = 51;
constexpr uint32_t kGraphLaunch = 311;

void Resource(uint32_t id, uint64_t node, uint64_t original) {
  gpusonde_cupti_graph_data graph{};
  graph.graph = reinterpret_cast<void*>(1 + (original != 0));
  graph.node = reinterpret_cast<void*>(node);
  graph.original_node = reinterpret_cast<void*>(original);
  gpusonde_cupti_resource_data resource{};
  resource.descriptor = &graph;
  CallBack(GPUSONDE_CUPTI_DOMAIN_RESOURCE, id, &resource);
}

}  // namespace

extern "C" {

void FakeLaunch(const char* name, uint32_t device, uint64_t duration_ns) {
  const uint32_t correlation = NextCorrelation();
  Call(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kLaunchKernel, correlation, [&] {
    Call(GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel, correlation,
         [&] { Put(Kernel(name, device, correlation, duration_ns)); });
  });
}

void FakeCopy(uint8_t kind, uint64_t bytes, uint64_t duration_ns) {
  const uint32_t correlation = NextCorrelation();
  Call(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kMemcpyAsync, correlation, [&] {
    gpusonde_cupti_memcpy copy{};
    copy.kind = GPUSONDE_CUPTI_KIND_MEMCPY;
    copy.copy_kind = kind;
    copy.source_kind = GPUSONDE_CUPTI_MEMORY_PINNED;
    copy.target_kind = GPUSONDE_CUPTI_MEMORY_DEVICE;
    copy.flags = GPUSONDE_CUPTI_FLAG_ASYNC;
    copy.bytes = bytes;
    copy.start = Now();
    copy.end = copy.start + duration_ns;
    copy.context_id = 1;
    copy.correlation_id = correlation;
    Put(copy);
  });
}

void FakeSet(uint64_t bytes, uint64_t duration_ns) {
  const uint32_t correlation = NextCorrelation();
  Call(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kMemsetAsync, correlation, [&] {
    gpusonde_cupti_memset set{};
    set.kind = GPUSONDE_CUPTI_KIND_MEMSET;
    set.bytes = bytes;
    set.start = Now();
    set.end = set.start + duration_ns;
    set.context_id = 1;
    set.correlation_id = correlation;
    Put(set);
  });
}

void FakeSync(uint64_t duration_ns) {
  gpusonde_cupti_synchronization sync{};
  sync.kind = GPUSONDE_CUPTI_KIND_SYNCHRONIZATION;
  sync.type = GPUSONDE_CUPTI_SYNC_STREAM;
  sync.start = Now();
  sync.end = sync.start + duration_ns;
  sync.correlation_id = NextCorrelation();
  sync.context_id = 1;
  sync.stream_id = 7;
  Put(sync);
}

void FakeGraph(const char* name, uint32_t nodes, uint32_t launches, uint64_t duration_ns) {
  const uint64_t first = g_fake.next_node;
  g_fake.next_node += 2 * nodes;
  for (uint32_t i = 0; i < nodes; ++i) Resource(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED, first + i, 0);
  for (uint32_t i = 0; i < nodes; ++i)
    Resource(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED, first + nodes + i, first + i);
  for (uint32_t launch = 0; launch < launches; ++launch) {
    const uint32_t correlation = NextCorrelation();
    Call(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kGraphLaunch, correlation, [&] {
      for (uint32_t i = 0; i < nodes; ++i) {
        gpusonde_cupti_kernel kernel = Kernel(name, 0, correlation, duration_ns);
        kernel.graph_node_id = first + nodes + i;
        kernel.graph_id = 2;
        Put(kernel);
      }
    });
  }
}

void FakeSetCorrelation(uint32_t correlation) { g_fake.correlation = correlation; }
void FakeDropTimes() { g_fake.drop_times = true; }
void FakeDropRecords(uint64_t count) { g_fake.dropped += count; }
void FakeForeignSubscriber(const char* name) {
  g_fake.callback = [](void*, uint32_t, uint32_t, const void*) {};
  g_fake.holder = name;
}
void FakeForeignBuffers() {
  const std::lock_guard lock(g_fake.mutex);
  CompleteBuffer();
  g_fake.requested = [](uint8_t** buffer, size_t* bytes, size_t*) {
    *bytes = size_t{1} << 20;
    *buffer = new uint8_t[*bytes];
  };
  g_fake.completed = [](void*, uint32_t, uint8_t* buffer, size_t, size_t) { delete[] buffer; };
}
void FakeFail(int32_t result) { g_fake.failure = result; }
uint32_t FakeSubscribers() { return g_fake.callback == nullptr ? 0 : 1; }
uint32_t FakeEnabledKinds() { return static_cast<uint32_t>(g_fake.kinds.size()); }
uint32_t FakeEnabledCallbacks() { return static_cast<uint32_t>(g_fake.callbacks.size()); }

// --- CUPTI's own ---

gpusonde_cupti_get_version_fn cuptiGetVersion;
gpusonde_cupti_subscribe_fn cuptiSubscribe;
gpusonde_cupti_subscribe_v2_fn cuptiSubscribe_v2;
gpusonde_cupti_unsubscribe_fn cuptiUnsubscribe;
gpusonde_cupti_enable_callback_fn cuptiEnableCallback;
gpusonde_cupti_activity_kind_fn cuptiActivityEnable;
gpusonde_cupti_activity_kind_fn cuptiActivityDisable;
gpusonde_cupti_activity_register_callbacks_fn cuptiActivityRegisterCallbacks;
gpusonde_cupti_activity_register_timestamp_callback_fn cuptiActivityRegisterTimestampCallback;
gpusonde_cupti_activity_flush_all_fn cuptiActivityFlushAll;
gpusonde_cupti_activity_get_next_record_fn cuptiActivityGetNextRecord;
gpusonde_cupti_activity_get_num_dropped_records_fn cuptiActivityGetNumDroppedRecords;
gpusonde_cupti_get_device_id_fn cuptiGetDeviceId;
gpusonde_cupti_get_context_id_fn cuptiGetContextId;
gpusonde_cupti_get_graph_id_fn cuptiGetGraphId;
gpusonde_cupti_get_graph_node_id_fn cuptiGetGraphNodeId;

int32_t cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return g_fake.failure;
}

int32_t cuptiSubscribe_v2(gpusonde_cupti_subscriber_handle* subscriber, gpusonde_cupti_callback* callback,
                          void* user, gpusonde_cupti_subscriber_params* params) {
  const std::lock_guard lock(g_fake.mutex);
  if (g_fake.failure != 0) return g_fake.failure;
  if (g_fake.callback != nullptr) {
    if (params != nullptr && params->old_subscriber_name != nullptr)
      std::strncpy(params->old_subscriber_name, g_fake.holder.c_str(), params->old_subscriber_size);
    return GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  g_fake.callback = callback;
  g_fake.user = user;
  *subscriber = kSubscriber;
  return 0;
}

int32_t cuptiSubscribe(gpusonde_cupti_subscriber_handle* subscriber, gpusonde_cupti_callback* callback,
                       void* user) {
  return cuptiSubscribe_v2(subscriber, callback, user, nullptr);
}

int32_t cuptiUnsubscribe(gpusonde_cupti_subscriber_handle) {
  const std::lock_guard lock(g_fake.mutex);
  g_fake.callback = nullptr;
  g_fake.callbacks.clear();
  return g_fake.failure;
}

int32_t cuptiEnableCallback(uint32_t enable, gpusonde_cupti_subscriber_handle, uint32_t domain, uint32_t id) {
  const std::lock_guard lock(g_fake.mutex);
  if (enable != 0)
    g_fake.callbacks.insert({domain, id});
  else
    g_fake.callbacks.erase({domain, id});
  return g_fake.failure;
}

int32_t cuptiActivityEnable(uint32_t kind) {
  const std::lock_guard lock(g_fake.mutex);
  if (g_fake.failure == 0) g_fake.kinds.insert(kind);
  return g_fake.failure;
}

int32_t cuptiActivityDisable(uint32_t kind) {
  const std::lock_guard lock(g_fake.mutex);
  g_fake.kinds.erase(kind);
  return g_fake.failure;
}

int32_t cuptiActivityRegisterCallbacks(gpusonde_cupti_buffer_requested* requested,
                                       gpusonde_cupti_buffer_completed* completed) {
  const std::lock_guard lock(g_fake.mutex);
  g_fake.requested = requested;
  g_fake.completed = completed;
  return g_fake.failure;
}

int32_t cuptiActivityRegisterTimestampCallback(gpusonde_cupti_timestamp* timestamp) {
  g_fake.timestamp = timestamp;
  return g_fake.failure;
}

int32_t cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard lock(g_fake.mutex);
  CompleteBuffer();
  return g_fake.failure;
}

int32_t cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, void** record) {
  auto* next = buffer;
  if (*record != nullptr) {
    uint32_t kind = 0;
    std::memcpy(&kind, *record, sizeof kind);
    next = static_cast<uint8_t*>(*record) + SizeOf(kind);
  }
  if (next >= buffer + valid_bytes) return GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = next;
  return 0;
}

int32_t cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  const std::lock_guard lock(g_fake.mutex);
  *dropped = std::exchange(g_fake.dropped, 0);
  return g_fake.failure;
}

int32_t cuptiGetDeviceId(void*, uint32_t* device) {
  *device = 0;
  return g_fake.failure;
}

int32_t cuptiGetContextId(void*, uint32_t* context) {
  *context = 1;
  return g_fake.failure;
}

int32_t cuptiGetGraphId(void* graph, uint32_t* id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(graph));
  return g_fake.failure;
}

int32_t cuptiGetGraphNodeId(void* node, uint64_t* id) {
  *id = reinterpret_cast<uintptr_t>(node);
  return g_fake.failure;
}
}
