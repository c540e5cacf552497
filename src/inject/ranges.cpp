// SPDX-License-Identifier: Apache-2.0
#include "inject/ranges.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/calls.h"
#include "inject/libc.h"
#include "inject/shared_batch.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

// What a tool that doesn't report the nesting level returns (NVTX_NO_PUSH_POP_TRACKING, nvToolsExt.h).
constexpr int kNoLevels = -2;
constexpr uint32_t kMaxDepth = 64;
constexpr uint32_t kMaxOpen = 1024;
constexpr size_t kTextsBytes = size_t{4} << 20;

// A registered string or a domain. It lives as long as the process; its NVTX handle is a pointer to it.
struct Text {
  uint32_t length;
  char text[GPUSONDE_GPU_TEXT_BYTES];
};

struct Open {
  uint64_t start_ns;
  const Text* domain;
  uint32_t session;
  uint32_t length;
  char text[GPUSONDE_GPU_TEXT_BYTES];
};

struct Stack {
  Open ranges[kMaxDepth];
  Stack* next;
  uint32_t owner;  // atomic: a thread, which may have ended
};

struct ThreadRanges {
  Stack* stack;  // from the thread's first range on
  uint32_t depth;
  uint32_t tid;
};
constinit thread_local ThreadRanges t_ranges{};

constexpr size_t kMaxTexts = kTextsBytes / sizeof(Text);
Text g_texts[kMaxTexts];    // pages that are never touched cost nothing
uint64_t g_text_count = 0;  // atomic
uint64_t g_next_id = 1;     // atomic
// A forked child, which may find it taken for ever, has no session and doesn't lock it: NVTX is used there,
// too.
Mutex g_lock;
Open* g_open = nullptr;  // start-end ranges, by id modulo kMaxOpen

const Text* Keep(const char* text) {
  uint64_t index = __atomic_load_n(&g_text_count, __ATOMIC_RELAXED);
  do {
    if (text == nullptr || index == kMaxTexts) return nullptr;
  } while (!__atomic_compare_exchange_n(&g_text_count, &index, index + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  Text& kept = g_texts[index];
  const size_t length = strnlen(text, sizeof kept.text);
  memcpy(kept.text, text, length);
  __atomic_store_n(&kept.length, static_cast<uint32_t>(length), __ATOMIC_RELEASE);
  return &kept;
}

// A handle is from the host and may be invalid: only a pointer to an entry of our table is followed.
const Text* Known(const void* handle) {
  const auto offset = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(g_texts);
  const bool is_entry = offset < sizeof g_texts && offset % sizeof(Text) == 0;
  return is_entry ? &g_texts[offset / sizeof(Text)] : nullptr;
}

Stack* g_stacks = nullptr;          // atomic: all
Stack* g_examined_stack = nullptr;  // atomic: the next that may be another thread's

bool HasEnded(uint32_t thread) {
  const KeptErrno kept;
  return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

// One of a thread that has ended, else a new one; null if there is no memory. Threads are not noticed when
// they end, as that would take one of the program's keys (pthread_key_create).
Stack* TakeStack(uint32_t thread) {
  constexpr int kExamined = 8;
  Stack* stack = __atomic_load_n(&g_examined_stack, __ATOMIC_ACQUIRE);
  for (int i = 0; i < kExamined; ++i) {
    if (stack == nullptr) stack = __atomic_load_n(&g_stacks, __ATOMIC_ACQUIRE);
    if (stack == nullptr) break;
    __atomic_store_n(&g_examined_stack, stack->next, __ATOMIC_RELEASE);
    uint32_t owner = __atomic_load_n(&stack->owner, __ATOMIC_RELAXED);
    if ((owner == thread || HasEnded(owner)) &&
        __atomic_compare_exchange_n(&stack->owner, &owner, thread, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      for (Open& range : stack->ranges)
        if (range.session != 0) range.session = 0;
      return stack;
    }
    stack = stack->next;
  }
  stack = static_cast<Stack*>(Pages(sizeof(Stack)));
  if (stack == nullptr) return nullptr;
  stack->owner = thread;
  stack->next = __atomic_load_n(&g_stacks, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&g_stacks, &stack->next, stack, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return stack;
}

void SetText(Open& range, const char* text, size_t length) {
  range.length = static_cast<uint32_t>(length);
  memcpy(range.text, text, length);
}

void Begin(Open& range, const Text* domain, const char* ascii) {
  range = {.start_ns = NowNs(), .domain = domain, .session = CallSession(), .length = 0, .text = {}};
  if (ascii != nullptr) SetText(range, ascii, strnlen(ascii, sizeof range.text));
}

void Begin(Open& range, const Text* domain, const gpusonde_nvtx_attributes* attributes) {
  const bool has_message = attributes != nullptr && attributes->size >= sizeof(gpusonde_nvtx_attributes);
  if (has_message && attributes->message_type == GPUSONDE_NVTX_MESSAGE_ASCII)
    return Begin(range, domain, static_cast<const char*>(attributes->message));
  Begin(range, domain, static_cast<const char*>(nullptr));
  if (!has_message || attributes->message_type != GPUSONDE_NVTX_MESSAGE_REGISTERED) return;
  if (const Text* text = Known(attributes->message)) SetText(range, text->text, text->length);
}

uint32_t Tid() {
  if (t_ranges.tid == 0) t_ranges.tid = ThreadId();
  return t_ranges.tid;
}

void Send(const Open& range, uint16_t kind) {
  const uint64_t now = NowNs();
  const size_t domain_length = range.domain == nullptr ? 0 : range.domain->length;
  HostBatch().Add(range.session, GPUSONDE_GPU_RANGE,
                  sizeof(gpusonde_gpu_range) + range.length + domain_length, [&](void* memory) {
                    auto* record = static_cast<gpusonde_gpu_range*>(memory);
                    record->tid = Tid();
                    record->start_ns = range.start_ns;
                    record->end_ns = now;
                    record->kind = kind;
                    record->text_length = static_cast<uint16_t>(range.length);
                    record->domain_length = static_cast<uint16_t>(domain_length);
                    char* text = reinterpret_cast<char*>(record + 1);
                    memcpy(text, range.text, range.length);
                    if (domain_length != 0) memcpy(text + range.length, range.domain->text, domain_length);
                  });
}

// The depth is counted while asleep too, so that pushes and pops match when the library wakes.
template <class Message>
int Push(const void* domain, Message message) {
  ThreadRanges& ranges = t_ranges;
  const uint32_t depth = ranges.depth++;
  if (CallSession() == 0) {
    if (ranges.stack != nullptr && depth < kMaxDepth) ranges.stack->ranges[depth].session = 0;
    return kNoLevels;
  }
  if (ranges.stack == nullptr) ranges.stack = TakeStack(Tid());
  if (ranges.stack == nullptr || depth >= kMaxDepth)
    CountDrop(GPUSONDE_GPU_DROP_RANGES);
  else
    Begin(ranges.stack->ranges[depth], Known(domain), message);
  return kNoLevels;
}

int Pop() {
  ThreadRanges& ranges = t_ranges;
  if (ranges.depth == 0) return kNoLevels;
  const uint32_t depth = --ranges.depth;
  const uint32_t session = CallSession();
  if (session == 0 || ranges.stack == nullptr || depth >= kMaxDepth) return kNoLevels;
  // A range that began in another session, or while asleep, was observed only in part and is not sent.
  Open& range = ranges.stack->ranges[depth];
  if (range.session == session) Send(range, GPUSONDE_GPU_RANGE_PUSH_POP);
  range.session = 0;
  return kNoLevels;
}

template <class Message>
uint64_t Start(const void* domain, Message message) {
  const uint64_t id = __atomic_fetch_add(&g_next_id, 1, __ATOMIC_RELAXED);
  const uint32_t session = CallSession();
  if (session == 0) return id;
  const Locked locked(g_lock);
  if (g_open == nullptr) g_open = static_cast<Open*>(Pages(kMaxOpen * sizeof(Open)));
  if (g_open == nullptr || g_open[id % kMaxOpen].session == session) {
    CountDrop(GPUSONDE_GPU_DROP_RANGES);
    return 0;  // End ignores id 0
  }
  Begin(g_open[id % kMaxOpen], Known(domain), message);
  return id;
}

void End(uint64_t id) {
  const uint32_t session = CallSession();
  if (id == 0 || session == 0) return;
  const Locked locked(g_lock);
  if (g_open == nullptr || g_open[id % kMaxOpen].session != session) return;
  Send(g_open[id % kMaxOpen], GPUSONDE_GPU_RANGE_START_END);
  g_open[id % kMaxOpen].session = 0;
}

// --- NVTX's functions, with NVTX's signatures (nvtxDetail/nvtxTypes.h) ---

int RangePushA(const char* text) { return Push(nullptr, text); }
// Without its text; but its pop must not end another range.
int RangePushW(const wchar_t*) { return Push(nullptr, static_cast<const char*>(nullptr)); }
int RangePushEx(const gpusonde_nvtx_attributes* attributes) { return Push(nullptr, attributes); }
int RangePop() { return Pop(); }
uint64_t RangeStartA(const char* text) { return Start(nullptr, text); }
uint64_t RangeStartEx(const gpusonde_nvtx_attributes* attributes) { return Start(nullptr, attributes); }
void RangeEnd(uint64_t id) { End(id); }
int DomainRangePushEx(const void* domain, const gpusonde_nvtx_attributes* attributes) {
  return Push(domain, attributes);
}
int DomainRangePop(const void*) { return Pop(); }
uint64_t DomainRangeStartEx(const void* domain, const gpusonde_nvtx_attributes* attributes) {
  return Start(domain, attributes);
}
void DomainRangeEnd(const void*, uint64_t id) { End(id); }
const void* DomainCreateA(const char* text) { return Keep(text); }
const void* DomainRegisterStringA(const void*, const char* text) { return Keep(text); }

struct Entry {
  uint32_t id;
  gpusonde_nvtx_function function;
};
#define ENTRY(id, function) {GPUSONDE_NVTX_##id, reinterpret_cast<gpusonde_nvtx_function>(function)}

void Attach(const gpusonde_nvtx_callbacks& callbacks, uint32_t module, const Entry* entries, size_t count) {
  gpusonde_nvtx_function** table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return;
  for (size_t i = 0; i < count; ++i)
    if (entries[i].id < size && table[entries[i].id] != nullptr) *table[entries[i].id] = entries[i].function;
}

}  // namespace

bool AttachRanges(gpusonde_nvtx_get_export_table* get_export_table) {
  if (get_export_table == nullptr) return false;
  const auto* callbacks =
      static_cast<const gpusonde_nvtx_callbacks*>(get_export_table(GPUSONDE_NVTX_TABLE_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(gpusonde_nvtx_callbacks) ||
      callbacks->get_module_function_table == nullptr)
    return false;
  const Entry core[] = {
      ENTRY(CORE_RANGE_START_EX, RangeStartEx), ENTRY(CORE_RANGE_START_A, RangeStartA),
      ENTRY(CORE_RANGE_END, RangeEnd),          ENTRY(CORE_RANGE_PUSH_EX, RangePushEx),
      ENTRY(CORE_RANGE_PUSH_A, RangePushA),     ENTRY(CORE_RANGE_PUSH_W, RangePushW),
      ENTRY(CORE_RANGE_POP, RangePop),
  };
  const Entry core2[] = {
      ENTRY(CORE2_DOMAIN_RANGE_START_EX, DomainRangeStartEx),
      ENTRY(CORE2_DOMAIN_RANGE_END, DomainRangeEnd),
      ENTRY(CORE2_DOMAIN_RANGE_PUSH_EX, DomainRangePushEx),
      ENTRY(CORE2_DOMAIN_RANGE_POP, DomainRangePop),
      ENTRY(CORE2_DOMAIN_REGISTER_STRING_A, DomainRegisterStringA),
      ENTRY(CORE2_DOMAIN_CREATE_A, DomainCreateA),
  };
  Attach(*callbacks, GPUSONDE_NVTX_MODULE_CORE, core, sizeof core / sizeof core[0]);
  Attach(*callbacks, GPUSONDE_NVTX_MODULE_CORE2, core2, sizeof core2 / sizeof core2[0]);
  return true;
}

}  // namespace gpusonde::inject
