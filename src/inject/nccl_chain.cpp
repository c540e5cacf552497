// SPDX-License-Identifier: Apache-2.0
#include "inject/nccl_chain.h"

#include <stdlib.h>
#include <string.h>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

// The interfaces that the library exports; those it lacks are null.
struct Chain {
  const gpusonde_nccl_profiler_v3* v3;
  const gpusonde_nccl_profiler_v4* v4;
  const gpusonde_nccl_profiler_v5* v5;
  const gpusonde_nccl_profiler_v5* v6;
  // The interface in use, and its functions that don't depend on the version of a descriptor.
  uint32_t version;
  gpusonde_nccl_result (*stop)(void* handle);
  gpusonde_nccl_result (*finalize)(void* context);
};

Mutex g_chain_lock;
bool g_opened = false;
bool g_usable = false;
Chain g_chain;     // constant once a communicator has a chained context
int g_chain_mask;  // atomic: the chained plugin writes it, at any time

int ChainedEvents() { return __atomic_load_n(&g_chain_mask, __ATOMIC_RELAXED); }

template <class Interface>
void Find(void* library, const char* symbol, const Interface*& interface) {
  interface = static_cast<const Interface*>(FindSymbol(library, symbol));
}

template <class Interface>
void Use(const Interface* interface, uint32_t version) {
  if (interface == nullptr) return;
  g_chain.version = version;
  g_chain.stop = interface->stop;
  g_chain.finalize = interface->finalize;
}

// The newest interface that isn't newer than NCCL's. Its calls all come through that one: NCCL uses one
// version.
bool Open(uint32_t version) {
  const Locked locked(g_chain_lock);
  if (g_opened) return g_usable;
  g_opened = true;
  const char* path = getenv(kChainVariable);
  if (path == nullptr || *path == '\0') return false;
  void* library = OpenLibrary(path, false);
  if (library == nullptr) return false;
  Find(library, "ncclProfiler_v3", g_chain.v3);
  Find(library, "ncclProfiler_v4", g_chain.v4);
  Find(library, "ncclProfiler_v5", g_chain.v5);
  Find(library, "ncclProfiler_v6", g_chain.v6);
  Use(g_chain.v3, 3);
  if (version >= 4) Use(g_chain.v4, 4);
  if (version >= 5) Use(g_chain.v5, 5);
  if (version >= 6) Use(g_chain.v6, 6);
  g_usable = g_chain.version != 0;
  return g_usable;
}

constexpr int kTransfers = GPUSONDE_NCCL_PROXY_OP | GPUSONDE_NCCL_PROXY_STEP | GPUSONDE_NCCL_NET_PLUGIN;
constexpr int kUnderCalls = kTransfers | GPUSONDE_NCCL_KERNEL_CH;
constexpr int kCopies = GPUSONDE_NCCL_CE_COLL | GPUSONDE_NCCL_CE_SYNC | GPUSONDE_NCCL_CE_BATCH;

// The events by which a plugin gets events of this type: those of the type, and of its children (the
// hierarchy in NCCL's plugins/profiler/README.md).
int ReasonsFor(uint64_t type) {
  switch (type) {
    case GPUSONDE_NCCL_GROUP:
      return GPUSONDE_NCCL_GROUP | GPUSONDE_NCCL_COLL | GPUSONDE_NCCL_P2P | kUnderCalls;
    case GPUSONDE_NCCL_GROUP_API:
      return ~GPUSONDE_NCCL_PROXY_CTRL;
    case GPUSONDE_NCCL_COLL_API:
      return GPUSONDE_NCCL_COLL_API | GPUSONDE_NCCL_COLL | kUnderCalls | kCopies;
    case GPUSONDE_NCCL_P2P_API:
      return GPUSONDE_NCCL_P2P_API | GPUSONDE_NCCL_P2P | kUnderCalls;
    case GPUSONDE_NCCL_COLL:
      return GPUSONDE_NCCL_COLL | kUnderCalls;
    case GPUSONDE_NCCL_P2P:
      return GPUSONDE_NCCL_P2P | kUnderCalls;
    case GPUSONDE_NCCL_PROXY_OP:
      return kTransfers;
    case GPUSONDE_NCCL_PROXY_STEP:
      return GPUSONDE_NCCL_PROXY_STEP | GPUSONDE_NCCL_NET_PLUGIN;
    case GPUSONDE_NCCL_CE_COLL:
      return kCopies;
    default:
      return static_cast<int>(type);
  }
}

bool Wants(const Communicator& communicator, uint64_t type) {
  if (!communicator.has_chained) return false;
  return type <= INT32_MAX && (static_cast<int>(type) & KnownEvents(g_chain.version)) != 0 &&
         (ReasonsFor(type) & ChainedEvents()) != 0;
}

void* Translated(void* parent) { return IsOwnHandle(parent) ? ChainedHandle(parent) : parent; }

template <class Interface, class Event>
void* Forward(const Interface* interface, const Communicator& communicator, Event& event) {
  void* handle = nullptr;
  interface->start(communicator.chained, &handle, &event);
  return handle;
}

void* StartV3(const Communicator& communicator, const gpusonde_nccl_event_v4& event) {
  gpusonde_nccl_event_v3 older{.type = event.type, .parent = event.parent, .rank = event.rank, .coll = {}};
  if (event.type == GPUSONDE_NCCL_COLL) {
    gpusonde_nccl_coll coll{};
    memcpy(&coll, event.words, sizeof event.words);
    older.coll = {.communicator_name = communicator.name,
                  .communicator = communicator.communicator,
                  .sequence = coll.sequence,
                  .operation = coll.operation,
                  .send_buffer = coll.send_buffer,
                  .receive_buffer = coll.receive_buffer,
                  .count = coll.count,
                  .root = coll.root,
                  .datatype = coll.datatype,
                  .max_channels = coll.channels,
                  .warps = coll.warps,
                  .algorithm = coll.algorithm,
                  .protocol = coll.protocol};
  } else if (event.type == GPUSONDE_NCCL_P2P) {
    gpusonde_nccl_p2p p2p{};
    memcpy(&p2p, event.words, offsetof(gpusonde_nccl_p2p, group));
    older.p2p = {.communicator_name = communicator.name,
                 .communicator = communicator.communicator,
                 .operation = p2p.operation,
                 .buffer = p2p.buffer,
                 .datatype = p2p.datatype,
                 .count = p2p.count,
                 .peer = p2p.peer};
  } else {
    memcpy(&older.proxy_op, event.words, sizeof older.proxy_op);  // the others begin alike
  }
  return Forward(g_chain.v3, communicator, older);
}

// `event` has the handles of the chained plugin.
void* StartV4(const Communicator& communicator, gpusonde_nccl_event_v4& event) {
  return g_chain.version == 3 ? StartV3(communicator, event) : Forward(g_chain.v4, communicator, event);
}

}  // namespace

int ChainMask() { return ChainedEvents(); }

void ChainInit(Communicator& communicator, gpusonde_nccl_log log) {
  if (!Open(communicator.version)) return;
  void* context = nullptr;
  int* mask = &g_chain_mask;
  const Communicator& of = communicator;
  const char* name = *of.name != '\0' ? of.name : nullptr;
  gpusonde_nccl_result result = GPUSONDE_NCCL_INTERNAL_ERROR;
  if (g_chain.version == 3)
    result = g_chain.v3->init(&context, mask);
  else if (g_chain.version == 4)
    result = g_chain.v4->init(&context, mask, name, of.communicator, of.nodes, of.ranks, of.rank, log);
  else
    result = (g_chain.version == 5 ? g_chain.v5 : g_chain.v6)
                 ->init(&context, of.communicator, mask, name, of.nodes, of.ranks, of.rank, log);
  if (result != GPUSONDE_NCCL_SUCCESS) return;
  communicator.chained = context;
  communicator.has_chained = true;
}

void ChainFinalize(Communicator& communicator) {
  if (!communicator.has_chained) return;
  communicator.has_chained = false;
  g_chain.finalize(communicator.chained);
}

void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v3& event) {
  if (!Wants(communicator, event.type)) return nullptr;
  gpusonde_nccl_event_v3 copy = event;
  copy.parent = Translated(event.parent);
  return Forward(g_chain.v3, communicator, copy);
}

void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v4& event) {
  if (!Wants(communicator, event.type)) return nullptr;
  gpusonde_nccl_event_v4 copy = event;
  copy.parent = Translated(event.parent);
  return StartV4(communicator, copy);
}

void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v5& event) {
  if (!Wants(communicator, event.type)) return nullptr;
  if (g_chain.version >= 5) {
    gpusonde_nccl_event_v5 copy = event;
    copy.parent = Translated(event.parent);
    return Forward(g_chain.version == 5 ? g_chain.v5 : g_chain.v6, communicator, copy);
  }
  // Until version 4 the parent of a call was its group, and descriptors ended earlier.
  void* parent = event.type == GPUSONDE_NCCL_COLL  ? event.coll.group
                 : event.type == GPUSONDE_NCCL_P2P ? event.p2p.group
                                                   : event.parent;
  gpusonde_nccl_event_v4 older{.type = static_cast<uint8_t>(event.type),
                               .parent = Translated(parent),
                               .rank = event.rank,
                               .words = {}};
  memcpy(older.words, event.words, sizeof older.words);
  return StartV4(communicator, older);
}

void ChainStop(void* handle) {
  if (handle != nullptr && g_chain.stop != nullptr) g_chain.stop(handle);
}

void ChainRecordState(void* handle, int state, gpusonde_nccl_state_v3* arguments) {
  if (handle != nullptr && g_chain.version == 3) g_chain.v3->record_state(handle, state, arguments);
}

void ChainRecordState(void* handle, int state, gpusonde_nccl_state_v4* arguments) {
  if (handle == nullptr) return;
  switch (g_chain.version) {
    case 3: {  // it has no states of proxy operations that NCCL still reports
      if (state < GPUSONDE_NCCL_STATE_PROXY_STEP_FIRST || state > GPUSONDE_NCCL_STATE_PROXY_CTRL_LAST) return;
      gpusonde_nccl_state_v3 older{};
      if (state >= GPUSONDE_NCCL_STATE_PROXY_CTRL_FIRST && arguments != nullptr)
        older.appended_proxy_ops = arguments->appended_proxy_ops;
      g_chain.v3->record_state(handle, state, &older);
      return;
    }
    case 4:
      if (state <= GPUSONDE_NCCL_STATE_KERNEL_CH_STOP) g_chain.v4->record_state(handle, state, arguments);
      return;
    case 5:
      if (state <= GPUSONDE_NCCL_STATE_GROUP_API_LAST) g_chain.v5->record_state(handle, state, arguments);
      return;
    case 6:
      g_chain.v6->record_state(handle, state, arguments);
      return;
    default:
      return;
  }
}

}  // namespace gpusonde::inject
