// SPDX-License-Identifier: Apache-2.0
#include "inject/collectives.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/libc.h"
#include "inject/nccl_chain.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

// Four times the collectives of a tick at 4,000 a second; 1 MiB, committed as it is used.
constexpr uint32_t kSlots = 4096;
// How many slots a call looks at before it is dropped.
constexpr uint32_t kTries = 16;
// A collective that has not ended for this long is sent as it is, and again when it has ended.
constexpr uint64_t kLongNs = 1'000'000'000;
// Which communicators there are is sent again after this time, for consumers that have come since.
constexpr uint64_t kAgainNs = 5'000'000'000;
// With kernels of all channels seen to begin and end, a collective has ended if none begins for this long.
// NCCL 2.24 announces more channels than it uses.
constexpr uint64_t kSettledNs = 250'000'000;
// How long the host's exit waits for our thread.
constexpr uint64_t kExitTimeoutNs = 2'000'000'000;
// What we want of NCCL. Kernels on channels are the only events that tell when a collective begins and ends.
constexpr int kWanted = GPUSONDE_NCCL_COLL | GPUSONDE_NCCL_KERNEL_CH;

enum State : uint32_t { kFree, kFilling, kOpen };

struct Slot {
  uint32_t word;  // atomic: generation << 8 | State
  uint32_t communicator;
  uint32_t tid;
  int32_t root;
  uint32_t channels;
  uint32_t begun, ended;       // atomic: channels
  bool sent_open, sent_begun;  // of the library's thread
  uint64_t sequence, count;
  uint64_t called_ns;
  uint64_t enqueued_ns, begin_ns, end_ns;  // atomic
  uint64_t gpu_begin, gpu_end;             // atomic
  char operation[24], datatype[16], algorithm[16], protocol[16];
};

struct ChainedHandles {
  void* call;
  void* channels[kMaxChannels];
};

Mutex g_table;                            // communicators, masks
Communicator* g_communicators = nullptr;  // atomic
uint64_t g_sent_ns = 0;                   // atomic: when the communicators were last sent

Mutex g_drain;  // what is sent, and the end of communicators; taken before g_table
bool g_crowded = false;
Slot* g_slots = nullptr;              // atomic
ChainedHandles* g_chained = nullptr;  // atomic; only with a chained plugin
uint64_t g_next = 0;                  // atomic: the slot to try next
uint32_t g_awake = 0;                 // atomic
int g_pid = 0;
constinit thread_local uint32_t t_tid = 0;

template <class T>
T Load(const T& value) {
  return __atomic_load_n(&value, __ATOMIC_RELAXED);
}
template <class T>
void Store(T& value, T to) {
  __atomic_store_n(&value, to, __ATOMIC_RELAXED);
}

// --- handles: 0xa05e | kind, channel (8) | generation (24) | slot (16) ---

constexpr uint64_t kTag = uint64_t{0xa05e} << 48;
constexpr uint64_t kTagBits = uint64_t{0xffff} << 48;
constexpr uint32_t kCallKind = 0xff;  // in place of the channel
static_assert(kSlots <= 65536 && kMaxChannels < kCallKind);

struct Handle {
  uint32_t kind, generation, slot;
};

void* ToHandle(const Handle& handle) {
  return __builtin_bit_cast(
      void*, kTag | uint64_t{handle.kind} << 40 | uint64_t{handle.generation & 0xffffff} << 16 | handle.slot);
}

Handle FromHandle(const void* handle) {
  const auto bits = reinterpret_cast<uint64_t>(handle);
  return {.kind = static_cast<uint32_t>(bits >> 40 & 0xff),
          .generation = static_cast<uint32_t>(bits >> 16 & 0xffffff),
          .slot = static_cast<uint32_t>(bits & 0xffff)};
}

// The slot that a handle refers to; null if it belongs to another collective by now. `must_be_open`: null
// also if it was sent already, but not yet reused.
Slot* SlotOf(const Handle& handle, bool must_be_open) {
  Slot* slots = __atomic_load_n(&g_slots, __ATOMIC_ACQUIRE);
  if (slots == nullptr || handle.slot >= kSlots) return nullptr;
  Slot& slot = slots[handle.slot];
  const uint32_t word = __atomic_load_n(&slot.word, __ATOMIC_ACQUIRE);
  if (word >> 8 != handle.generation) return nullptr;
  return must_be_open && (word & 0xff) != kOpen ? nullptr : &slot;
}

template <size_t size>
void CopyText(char (&to)[size], const char* from) {
  memset(to, 0, size);
  if (from != nullptr) memcpy(to, from, strnlen(from, size - 1));
}

void Lower(uint64_t& value, uint64_t to) {
  uint64_t seen = Load(value);
  while ((seen == 0 || to < seen) &&
         !__atomic_compare_exchange_n(&value, &seen, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
void Raise(uint64_t& value, uint64_t to) {
  uint64_t seen = Load(value);
  while (to > seen &&
         !__atomic_compare_exchange_n(&value, &seen, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// --- sending; g_drain is held ---

Batch g_batch(GPUSONDE_GPU_RECORDS, true);

void SendCommunicator(const Communicator& communicator) {
  if (Load(communicator.communicator) == 0) return;
  auto* record = static_cast<gpusonde_gpu_communicator*>(
      g_batch.Add(0, GPUSONDE_GPU_COMMUNICATOR, sizeof(gpusonde_gpu_communicator)));
  record->rank = communicator.rank;
  record->communicator = communicator.communicator;
  record->ranks = communicator.ranks;
  record->nodes = communicator.nodes;
  record->joined_ns = communicator.joined_ns;
  record->left_ns = communicator.left_ns;
  record->dropped = Load(communicator.dropped);
  record->plugin_version = communicator.version;
  memcpy(record->name, communicator.name, sizeof record->name);
}

void SendCall(const Slot& slot, bool ended) {
  const Communicator& communicator = g_communicators[slot.communicator];
  if (Load(communicator.communicator) == 0) return;
  auto* record = static_cast<gpusonde_gpu_collective*>(
      g_batch.Add(0, GPUSONDE_GPU_COLLECTIVE, sizeof(gpusonde_gpu_collective)));
  const uint64_t gpu_begin = Load(slot.gpu_begin);
  const uint64_t gpu_end = Load(slot.gpu_end);
  record->tid = slot.tid;
  record->communicator = communicator.communicator;
  record->rank = communicator.rank;
  record->root = slot.root;
  record->sequence = slot.sequence;
  record->count = slot.count;
  record->called_ns = slot.called_ns;
  record->enqueued_ns = Load(slot.enqueued_ns);
  record->begin_ns = Load(slot.begin_ns);
  record->end_ns = ended ? Load(slot.end_ns) : 0;
  record->gpu_ns = ended && gpu_begin != 0 && gpu_end > gpu_begin ? gpu_end - gpu_begin : 0;
  record->channels = slot.channels;
  memcpy(record->operation, slot.operation, sizeof record->operation);
  memcpy(record->datatype, slot.datatype, sizeof record->datatype);
  memcpy(record->algorithm, slot.algorithm, sizeof record->algorithm);
  memcpy(record->protocol, slot.protocol, sizeof record->protocol);
}

bool HasEnded(const Slot& slot, uint64_t now) {
  const uint32_t ended = __atomic_load_n(&slot.ended, __ATOMIC_ACQUIRE);
  if (ended == 0) return false;
  if (slot.channels != 0 && ended >= slot.channels) return true;
  return ended == Load(slot.begun) && now > Load(slot.end_ns) + kSettledNs;
}

void SendIfLong(Slot& slot, uint64_t now) {
  const bool begun = Load(slot.begin_ns) != 0;
  if (now < slot.called_ns + kLongNs || (slot.sent_open && slot.sent_begun == begun)) return;
  slot.sent_open = true;
  slot.sent_begun = begun;
  SendCall(slot, false);
}

// Sends what has ended, or has lasted long, and frees the former. `left`: frees all collectives of this
// communicator. While more than half of the slots are taken, collectives whose kernels are not seen (those of
// graphs) are freed after kLongNs, without an end.
void Drain(const Communicator* left) {
  Slot* slots = __atomic_load_n(&g_slots, __ATOMIC_ACQUIRE);
  if (slots == nullptr) return;
  const uint64_t now = NowNs();
  const uint64_t used = Load(g_next);
  uint32_t open = 0;
  for (uint32_t i = 0; i < (used < kSlots ? used : kSlots); ++i) {
    Slot& slot = slots[i];
    const uint32_t word = __atomic_load_n(&slot.word, __ATOMIC_ACQUIRE);
    if ((word & 0xff) != kOpen) continue;
    const bool ended = HasEnded(slot, now);
    const bool given_up = g_crowded && Load(slot.begun) == 0 && now > slot.called_ns + kLongNs;
    const bool is_left = left != nullptr && left == &g_communicators[slot.communicator];
    if (!ended && !given_up && !is_left) {
      SendIfLong(slot, now);
      ++open;
      continue;
    }
    if (ended || !slot.sent_open) SendCall(slot, ended);
    __atomic_store_n(&slot.word, (word & ~uint32_t{0xff}) | kFree, __ATOMIC_RELEASE);
  }
  g_crowded = open > kSlots / 2;
}

// Without sending them.
void FreeCallsOf(const Communicator& communicator) {
  Slot* slots = __atomic_load_n(&g_slots, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; slots != nullptr && i < kSlots; ++i) {
    const uint32_t word = __atomic_load_n(&slots[i].word, __ATOMIC_ACQUIRE);
    if ((word & 0xff) == kOpen && &communicator == &g_communicators[slots[i].communicator])
      __atomic_store_n(&slots[i].word, (word & ~uint32_t{0xff}) | kFree, __ATOMIC_RELEASE);
  }
}

// --- communicators; g_table is held ---

// Writes which events NCCL has to report where NCCL reads it: the same place for all communicators of one
// NCCL. Only while one is in use, as NCCL may be unloaded afterwards.
void WriteMasks() {
  const int mask = (Load(g_awake) != 0 ? kWanted : 0) | ChainMask();
  for (size_t i = 0; i < kMaxCommunicators; ++i) {
    const Communicator& communicator = g_communicators[i];
    if (Load(communicator.used) == 0) continue;
    const int known = mask & KnownEvents(communicator.version);
    if (Load(*communicator.mask) != known) Store(*communicator.mask, known);
  }
}

void AtExit() {
  if (getpid() != g_pid) return;  // a forked child
  // A handler of the program's signals may have called exit() while its thread held the lock, in
  // LeaveCommunicator.
  const HostWaits waits;
  const LockedUntil drain(g_drain, NowNs() + kExitTimeoutNs);
  if (!drain) return;
  if (Load(g_awake) != 0) Drain(nullptr);
  g_batch.Flush();
}

}  // namespace

bool IsOwnHandle(const void* handle) { return (reinterpret_cast<uint64_t>(handle) & kTagBits) == kTag; }

Communicator* JoinCommunicator(const Communicator& described) {
  const Locked table(g_table);
  if (g_communicators == nullptr) {
    auto* communicators = static_cast<Communicator*>(Pages(kMaxCommunicators * sizeof(Communicator)));
    if (communicators == nullptr) return nullptr;
    g_pid = getpid();
    __atomic_store_n(&g_slots, static_cast<Slot*>(Pages(kSlots * sizeof(Slot))), __ATOMIC_RELEASE);
    __atomic_store_n(&g_communicators, communicators, __ATOMIC_RELEASE);
    atexit(AtExit);
  }
  for (size_t i = 0; i < kMaxCommunicators; ++i) {
    Communicator& communicator = g_communicators[i];
    if (Load(communicator.used) != 0) continue;
    communicator = described;
    communicator.joined_ns = NowNs();
    __atomic_store_n(&communicator.used, 1, __ATOMIC_RELEASE);
    Store(g_sent_ns, uint64_t{0});
    return &communicator;
  }
  return nullptr;
}

void LeaveCommunicator(Communicator* communicator) {
  if (getpid() != g_pid) return;  // a forked child
  const HostWaits waits;
  const Locked drain(g_drain);
  communicator->left_ns = NowNs();
  if (Load(g_awake) != 0) {
    Drain(communicator);
    SendCommunicator(*communicator);
    g_batch.Flush();
  } else {
    FreeCallsOf(*communicator);  // its place is another's from now on
  }
  const Locked table(g_table);
  *communicator = {};
}

Communicator* CommunicatorOf(void* context) {
  auto* communicator = static_cast<Communicator*>(context);
  Communicator* communicators = __atomic_load_n(&g_communicators, __ATOMIC_ACQUIRE);
  if (communicator == nullptr || communicator < communicators ||
      communicator >= communicators + kMaxCommunicators)
    return nullptr;
  return __atomic_load_n(&communicator->used, __ATOMIC_ACQUIRE) != 0 ? communicator : nullptr;
}

void DescribeCommunicator(Communicator& communicator, uint64_t hash, int32_t rank, const char* name) {
  if (Load(communicator.communicator) != 0 || hash == 0) return;
  const Locked table(g_table);
  communicator.rank = rank;
  CopyText(communicator.name, name);
  __atomic_store_n(&communicator.communicator, hash, __ATOMIC_RELEASE);
  Store(g_sent_ns, uint64_t{0});
}

void* BeginCall(Communicator& communicator, const CallDescription& call) {
  Slot* slots = __atomic_load_n(&g_slots, __ATOMIC_ACQUIRE);
  if (Load(g_awake) == 0 || slots == nullptr) return nullptr;
  for (uint32_t tries = 0; tries < kTries; ++tries) {
    const auto index = static_cast<uint32_t>(__atomic_fetch_add(&g_next, 1, __ATOMIC_ACQ_REL) % kSlots);
    Slot& slot = slots[index];
    uint32_t word = Load(slot.word);
    const uint32_t generation = ((word >> 8) + 1) & 0xffffff;
    if ((word & 0xff) != kFree || !__atomic_compare_exchange_n(&slot.word, &word, generation << 8 | kFilling,
                                                               false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    if (t_tid == 0) t_tid = ThreadId();
    slot.communicator = static_cast<uint32_t>(&communicator - g_communicators);
    slot.tid = t_tid;
    slot.root = call.root;
    slot.channels = call.channels;
    slot.begun = slot.ended = 0;
    slot.sent_open = slot.sent_begun = false;
    slot.sequence = call.sequence;
    slot.count = call.count;
    slot.called_ns = NowNs();
    slot.enqueued_ns = slot.begin_ns = slot.end_ns = slot.gpu_begin = slot.gpu_end = 0;
    CopyText(slot.operation, call.operation);
    CopyText(slot.datatype, call.datatype);
    CopyText(slot.algorithm, call.algorithm);
    CopyText(slot.protocol, call.protocol);
    __atomic_store_n(&slot.word, generation << 8 | kOpen, __ATOMIC_RELEASE);
    return ToHandle({.kind = kCallKind, .generation = generation, .slot = index});
  }
  __atomic_fetch_add(&communicator.dropped, 1, __ATOMIC_RELAXED);
  return nullptr;
}

void* BeginChannel(const void* call, uint32_t channel, uint64_t gpu_ns) {
  Handle handle = FromHandle(call);
  Slot* slot = SlotOf(handle, true);
  if (slot == nullptr || handle.kind != kCallKind || channel >= kMaxChannels) return nullptr;
  __atomic_fetch_add(&slot->begun, 1, __ATOMIC_RELAXED);
  Lower(slot->begin_ns, NowNs());
  if (gpu_ns != 0) Lower(slot->gpu_begin, gpu_ns);
  handle.kind = channel;
  return ToHandle(handle);
}

void RecordChannelEnd(const void* event, uint64_t gpu_ns) {
  const Handle handle = FromHandle(event);
  if (Slot* slot = SlotOf(handle, true); slot != nullptr && handle.kind != kCallKind)
    Raise(slot->gpu_end, gpu_ns);
}

void EndEvent(const void* event) {
  const Handle handle = FromHandle(event);
  Slot* slot = SlotOf(handle, true);
  if (slot == nullptr) return;
  if (handle.kind == kCallKind) return Store(slot->enqueued_ns, NowNs());
  Raise(slot->end_ns, NowNs());
  __atomic_fetch_add(&slot->ended, 1, __ATOMIC_RELEASE);
}

void SetChainedHandle(const void* event, void* chained) {
  if (__atomic_load_n(&g_chained, __ATOMIC_ACQUIRE) == nullptr) {
    if (chained == nullptr) return;
    const Locked table(g_table);
    if (g_chained == nullptr)
      __atomic_store_n(&g_chained, static_cast<ChainedHandles*>(Pages(kSlots * sizeof(ChainedHandles))),
                       __ATOMIC_RELEASE);
  }
  const Handle handle = FromHandle(event);
  if (g_chained == nullptr || handle.slot >= kSlots) return;
  ChainedHandles& handles = g_chained[handle.slot];
  Store(handle.kind == kCallKind ? handles.call : handles.channels[handle.kind % kMaxChannels], chained);
}

void* ChainedHandle(const void* event) {
  const Handle handle = FromHandle(event);
  if (__atomic_load_n(&g_chained, __ATOMIC_ACQUIRE) == nullptr || SlotOf(handle, false) == nullptr)
    return nullptr;
  ChainedHandles& handles = g_chained[handle.slot];
  return Load(handle.kind == kCallKind ? handles.call : handles.channels[handle.kind % kMaxChannels]);
}

void SetCollectivesWanted(bool wanted) {
  const Locked table(g_table);
  if (g_communicators == nullptr) return;
  if (wanted != (Load(g_awake) != 0)) {
    Store(g_awake, wanted ? uint32_t{1} : uint32_t{0});
    Store(g_sent_ns, uint64_t{0});
  }
  WriteMasks();
}

void PollCollectives(bool wanted) {
  SetCollectivesWanted(wanted);
  Communicator* communicators = __atomic_load_n(&g_communicators, __ATOMIC_ACQUIRE);
  if (communicators == nullptr || !wanted) return;
  const Locked drain(g_drain);
  if (const uint64_t now = NowNs(); now > Load(g_sent_ns) + kAgainNs) {
    Store(g_sent_ns, now);
    for (size_t i = 0; i < kMaxCommunicators; ++i)
      if (__atomic_load_n(&communicators[i].used, __ATOMIC_ACQUIRE) != 0) SendCommunicator(communicators[i]);
  }
  Drain(nullptr);
  g_batch.Flush();
}

}  // namespace gpusonde::inject
