// SPDX-License-Identifier: Apache-2.0
#include "inject/calls.h"

#include <string.h>

#include <initializer_list>

#include "inject/activity.h"
#include "inject/call_sampler.h"
#include "inject/control.h"
#include "inject/detach.h"
#include "inject/launch_names.h"
#include "inject/libc.h"
#include "inject/names.h"
#include "inject/shared_batch.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"
#include "wire/nvidia/cupti_callbacks.h"

namespace gpusonde::inject {
namespace {

// Target of sampled graph nodes a second and thread. A graph is captured once and often holds thousands of
// nodes: more stacks than for launches, still bounded.
constexpr uint32_t kNodesPerSecond = 2000;

// What each launch uses comes first, in one cache line but for the call's sampling class.
struct ThreadState {
  uint32_t runtime_correlation;  // of the thread's last runtime call
  uint32_t tid;
  CallSampler calls;
  ClassSampler<1> nodes;
  uint32_t cloning;  // the session in which it began a call that copies nodes; 0: in no such call
};
constinit thread_local ThreadState t_state{};

// The sampling class of a kernel, by the hash of its name. A launch's callback derives the class from the
// name's address, which is cheap; activity records have the name at another address, so their class is looked
// up here. Filled when a launch is sampled.
constexpr uint32_t kKnownNames = 4096;
uint16_t g_class_of_name[kKnownNames];  // class + 1; 0: not known
CallSampler::Times g_times;             // µs of the last second
CallSampler::Times g_new_times;

constexpr size_t kCacheLineBytes = 64;

// Every callback reads these. What sampled calls of all threads write is in another cache line.
struct alignas(kCacheLineBytes) Now {
  uint32_t session = 0;
  uint32_t second = 1;
};
struct alignas(kCacheLineBytes) Sampled {
  uint64_t calls = 0;
  uint64_t cost_ns = 0;
};
constinit Now g_now;
constinit Sampled g_sampled;

uint32_t g_fatal_error = 0;
uint32_t g_rival_seen = 0;
constinit SharedBatch g_host_batch;

// Runs before a thread's first call.
__attribute__((noinline, cold)) void Seed(ThreadState& thread, uint32_t second) {
  thread.tid = ThreadId();
  thread.calls.Seed(RandomBits(), second);
  thread.nodes.Seed(RandomBits(), second, kNodesPerSecond);
}

// The class that a call is sampled in: by kernel, or by CUDA function where there is no kernel.
uint32_t ClassOf(uint32_t callback_id, const gpusonde_cupti_callback_data& call) {
  const uint64_t what =
      call.symbol_name == nullptr ? callback_id : reinterpret_cast<uintptr_t>(call.symbol_name);
  return static_cast<uint32_t>(what * 0x9e3779b97f4a7c15 >> 40);
}

void LearnClass(uint32_t of, const char* symbol_name) {
  if (symbol_name == nullptr) return;
  const uint64_t hash = Names::Hash(symbol_name, strnlen(symbol_name, GPUSONDE_GPU_NAME_BYTES));
  __atomic_store_n(&g_class_of_name[hash % kKnownNames], static_cast<uint16_t>(of % g_times.size() + 1),
                   __ATOMIC_RELAXED);
}

// A batch of one record, built on the stack.
template <class Record>
struct Single {
  alignas(8) gpusonde_gpu_batch header;
  Record record;
};

template <class Record>
void DeliverSingle(uint32_t session, uint16_t type, const Record& record) {
  static_assert(sizeof(Single<Record>) <= GPUSONDE_GPU_LAUNCH_BYTES && sizeof(Record) % 8 == 0);
  Single<Record> single{.header = {}, .record = record};
  single.record.record = {.type = type, .bytes = sizeof(Record)};
  Deliver(GPUSONDE_GPU_LAUNCH, session, &single, sizeof single, false);
}

__attribute__((noinline)) void SendCall(uint32_t domain, uint32_t callback_id,
                                        const gpusonde_cupti_callback_data& call) {
  const ThreadState& thread = t_state;
  const uint64_t start_ns = *call.correlation_data;
  const uint64_t now = NowNs(), cpu_before = ThreadCpuNs();
  // If the library woke between the call's entry and its exit, the word was not written by OnEntry.
  constexpr uint64_t kMaxCallNs = uint64_t{3600} * 1'000'000'000;
  if (start_ns > now || now - start_ns > kMaxCallNs) return;
  DeliverSingle(CallSession(), GPUSONDE_GPU_CALL,
                gpusonde_gpu_call{
                    .record = {},
                    .correlation = call.correlation_id,
                    .start_ns = start_ns,
                    .end_ns = now,
                    .tid = thread.tid,
                    .probability = thread.calls.probability(),
                    .domain = domain,
                    .callback_id = callback_id,
                    .result = call.function_return_value == nullptr
                                  ? 0
                                  : *static_cast<const int32_t*>(call.function_return_value),
                    .padding = 0,
                });
  LearnClass(ClassOf(callback_id, call), call.symbol_name);
  __atomic_fetch_add(&g_sampled.calls, 1, __ATOMIC_RELAXED);
  // Not the clock: where threads wait for CPUs, a preemption in here would count as our cost.
  __atomic_fetch_add(&g_sampled.cost_ns, ThreadCpuNs() - cpu_before, __ATOMIC_RELAXED);
}

// The thread's state, looked up once per callback. The compiler assumes that the address of a thread_local is
// cheap and recomputes it at each use; in a library loaded at run time each use calls __tls_get_addr.
ThreadState& Thread() {
  ThreadState* thread = &t_state;
  asm("" : "+r"(thread));
  return *thread;
}

#define LAUNCH(domain, id)
#define COPY(domain, id)
#define RUNTIME(name, id, what) what(GPUSONDE_CUPTI_DOMAIN_RUNTIME, id)
#define DRIVER(name, id, what) what(GPUSONDE_CUPTI_DOMAIN_DRIVER, id)

#define GRAPH_LAUNCH(domain, id) {domain, id},
constexpr uint16_t kGraphLaunches[][2] = {GPUSONDE_CUPTI_RUNTIME_CALLS(RUNTIME)
                                              GPUSONDE_CUPTI_DRIVER_CALLS(DRIVER)};
#undef GRAPH_LAUNCH

// Not a search of the above, as every launch asks.
bool IsGraphLaunch(uint32_t domain, uint32_t callback_id) {
#define GRAPH_LAUNCH(domain, id) case uint32_t{domain} << 16 | id:
  switch (domain << 16 | callback_id) {
    GPUSONDE_CUPTI_RUNTIME_CALLS(RUNTIME)
    GPUSONDE_CUPTI_DRIVER_CALLS(DRIVER)
    return true;
    default:
      return false;
  }
#undef GRAPH_LAUNCH
}

#undef DRIVER
#undef RUNTIME
#undef COPY
#undef LAUNCH

// Sampling is decided on entry, so that a sampled call's start is known; the stack is taken on exit, when the
// device is already busy. A driver call that the runtime makes within a runtime call has the correlation id
// of that call and is skipped. Not inlined, so that the other three callbacks of a launch need not save the
// registers that this one uses.
__attribute__((noinline)) void OnEntry(uint32_t domain, uint32_t callback_id,
                                       const gpusonde_cupti_callback_data& call) {
  ThreadState& thread = Thread();
  *call.correlation_data = 0;
  if (IsGraphLaunch(domain, callback_id)) [[unlikely]]
    NoteGraphs();
  if (domain == GPUSONDE_CUPTI_DOMAIN_RUNTIME)
    thread.runtime_correlation = call.correlation_id;
  else if (thread.runtime_correlation == call.correlation_id)
    return;
  if (Unloads() != 0 && call.symbol_name != nullptr) [[unlikely]]
    NoteLaunch(call.correlation_id, call.symbol_name);
  const uint32_t second = __atomic_load_n(&g_now.second, __ATOMIC_RELAXED);
  if (!thread.calls.seeded()) [[unlikely]]
    Seed(thread, second);
  if (thread.calls.Sample(second, ClassOf(callback_id, call), &g_times)) [[unlikely]]
    *call.correlation_data = NowNs();
}

bool IsCloning(uint32_t domain, uint32_t callback_id) {
  if (domain != GPUSONDE_CUPTI_DOMAIN_DRIVER) return false;
  switch (callback_id) {
#define CASE(name, id) case id:
    GPUSONDE_CUPTI_DRIVER_CLONING_CALLS(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

void OnGraphNode(const Cupti& cupti, const gpusonde_cupti_graph_data& data, bool cloned) {
  NoteGraphs();
  if (data.node_type > GPUSONDE_CU_GRAPH_NODE_MEMSET) return;
  if (!cloned && Thread().cloning == CallSession()) return;  // reported as cloned next
  gpusonde_gpu_graph_node node{};
  uint64_t id = 0;
  if (cupti.get_graph_node_id(data.node, &id) != GPUSONDE_CUPTI_SUCCESS) return;
  node.node = id;
  cupti.get_graph_id(data.graph, &node.graph);
  node.created_ns = NowNs();
  ThreadState& thread = Thread();
  const uint32_t second = __atomic_load_n(&g_now.second, __ATOMIC_RELAXED);
  if (!thread.calls.seeded()) Seed(thread, second);
  node.tid = thread.tid;
  if (!cloned && thread.nodes.Sample(second)) {
    node.probability = thread.nodes.probability();
    return DeliverSingle(CallSession(), GPUSONDE_GPU_GRAPH_NODE, node);
  }
  node.probability = thread.nodes.probability();
  if (cloned && cupti.get_graph_node_id(data.original_node, &id) == GPUSONDE_CUPTI_SUCCESS)
    node.original_node = id;
  g_host_batch.Add(CallSession(), GPUSONDE_GPU_GRAPH_NODE, sizeof node, [&](void* record) {
    node.record = *static_cast<gpusonde_gpu_record*>(record);
    *static_cast<gpusonde_gpu_graph_node*>(record) = node;
  });
}

void OnResource(const Cupti& cupti, uint32_t callback_id, const gpusonde_cupti_resource_data& resource) {
  switch (callback_id) {
    case GPUSONDE_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING:
      return NoteUnload();
    case GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED:
    case GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED:
      if (resource.descriptor != nullptr)
        OnGraphNode(cupti, *static_cast<const gpusonde_cupti_graph_data*>(resource.descriptor),
                    callback_id == GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED);
      return;
    default:
      return;
  }
}

void OnState(uint32_t callback_id, const gpusonde_cupti_state_data& state) {
  if (callback_id == GPUSONDE_CUPTI_STATE_FATAL_ERROR)
    __atomic_store_n(&g_fatal_error, 1, __ATOMIC_RELAXED);
  else if (state.result == GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    __atomic_store_n(&g_rival_seen, 1, __ATOMIC_RELAXED);
}

// Not inlined, so that the launch path need not save the registers that rare events use.
__attribute__((noinline)) void OnOther(void* user, uint32_t domain, uint32_t callback_id, const void* data) {
  if (domain == GPUSONDE_CUPTI_DOMAIN_RESOURCE)
    OnResource(*static_cast<const Cupti*>(user), callback_id,
               *static_cast<const gpusonde_cupti_resource_data*>(data));
  else if (domain == GPUSONDE_CUPTI_DOMAIN_STATE)
    OnState(callback_id, *static_cast<const gpusonde_cupti_state_data*>(data));
}

__attribute__((noinline)) void BetweenSessions(uint32_t domain, uint32_t callback_id, const void* data) {
  if (domain != GPUSONDE_CUPTI_DOMAIN_RUNTIME && domain != GPUSONDE_CUPTI_DOMAIN_DRIVER) return;
  if (IsForkedChild()) return;  // a request is the parent's
  if (IsGraphLaunch(domain, callback_id)) NoteGraphs();
  const auto& call = *static_cast<const gpusonde_cupti_callback_data*>(data);
  if (call.site == GPUSONDE_CUPTI_API_EXIT) FinalizeIfRequested();
}

}  // namespace

SharedBatch& HostBatch() { return g_host_batch; }

void OnCallback(void* user, uint32_t domain, uint32_t callback_id, const void* data) {
  if (CallSession() == 0) [[unlikely]]
    return BetweenSessions(domain, callback_id, data);
  if (domain != GPUSONDE_CUPTI_DOMAIN_RUNTIME && domain != GPUSONDE_CUPTI_DOMAIN_DRIVER) [[unlikely]]
    return OnOther(user, domain, callback_id, data);
  const auto& call = *static_cast<const gpusonde_cupti_callback_data*>(data);
  if (IsCloning(domain, callback_id)) [[unlikely]] {
    Thread().cloning = call.site == GPUSONDE_CUPTI_API_ENTER ? CallSession() : 0;
    return;
  }
  if (call.site == GPUSONDE_CUPTI_API_ENTER) return OnEntry(domain, callback_id, call);
  if (*call.correlation_data != 0) [[unlikely]]
    SendCall(domain, callback_id, call);
}

void EnableGraphLaunches(const Cupti& cupti, gpusonde_cupti_subscriber_handle subscriber) {
  for (const auto& [domain, id] : kGraphLaunches) cupti.enable_callback(1, subscriber, domain, id);
}

void EnableCallbacks(const Cupti& cupti, gpusonde_cupti_subscriber_handle subscriber) {
  constexpr uint16_t kRuntime[] = {
#define CALLBACK_ID(name, id, what) id,
      GPUSONDE_CUPTI_RUNTIME_CALLS(CALLBACK_ID)};
  constexpr uint16_t kDriver[] = {GPUSONDE_CUPTI_DRIVER_CALLS(CALLBACK_ID)};
#undef CALLBACK_ID
#define CALLBACK_ID(name, id) id,
  constexpr uint16_t kCloning[] = {GPUSONDE_CUPTI_DRIVER_CLONING_CALLS(CALLBACK_ID)};
#undef CALLBACK_ID
  for (const uint16_t id : kRuntime) cupti.enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_RUNTIME, id);
  for (const uint16_t id : kDriver) cupti.enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, id);
  for (const uint16_t id : kCloning) cupti.enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, id);
  for (const uint32_t id :
       {GPUSONDE_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING, GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED,
        GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED})
    cupti.enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_RESOURCE, id);
  for (const uint32_t id :
       {GPUSONDE_CUPTI_STATE_FATAL_ERROR, GPUSONDE_CUPTI_STATE_ERROR, GPUSONDE_CUPTI_STATE_WARNING})
    cupti.enable_callback(1, subscriber, GPUSONDE_CUPTI_DOMAIN_STATE, id);
}

void SetCallSession(uint32_t session) { __atomic_store_n(&g_now.session, session, __ATOMIC_RELEASE); }
uint32_t CallSession() { return __atomic_load_n(&g_now.session, __ATOMIC_ACQUIRE); }

void BeginTimes() { g_new_times = {}; }

void AddTime(uint64_t name_hash, uint64_t time_ns) {
  const uint16_t known = __atomic_load_n(&g_class_of_name[name_hash % kKnownNames], __ATOMIC_RELAXED);
  if (known != 0) g_new_times[known - 1] += static_cast<uint32_t>(time_ns / 1000);
}

void EndTimes() {
  for (size_t of = 0; of < g_times.size(); ++of)
    __atomic_store_n(&g_times[of], g_new_times[of], __ATOMIC_RELAXED);
}

void NextSecond() { __atomic_fetch_add(&g_now.second, 1, __ATOMIC_RELAXED); }

CallProgress GetCallProgress() {
  return {__atomic_load_n(&g_sampled.calls, __ATOMIC_RELAXED),
          __atomic_load_n(&g_sampled.cost_ns, __ATOMIC_RELAXED)};
}

bool TestAndClearFatalError() { return __atomic_exchange_n(&g_fatal_error, 0, __ATOMIC_RELAXED) != 0; }
bool TestAndClearRivalSeen() { return __atomic_exchange_n(&g_rival_seen, 0, __ATOMIC_RELAXED) != 0; }

}  // namespace gpusonde::inject
