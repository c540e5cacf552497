// SPDX-License-Identifier: Apache-2.0
#include "inject/launch_names.h"

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

// More than are launched between two looks at the records, at 200,000 a second.
constexpr uint32_t kLaunches = 1 << 16;
constexpr uint32_t kShortcuts = 4096;
constexpr uint32_t kIdBits = 16;
constexpr uint64_t kIdMask = (uint64_t{1} << kIdBits) - 1;
static_assert(Names::kMaxNames <= kIdMask);

// Words are read and written whole, so a launch of a known kernel takes no lock; 0: empty.
struct Tables {
  uint64_t launches[kLaunches];    // correlation << 32 | id, by correlation
  uint64_t shortcuts[kShortcuts];  // address << kIdBits | id, by address
};

Tables* g_tables = nullptr;   // atomic; null until first needed
uint32_t g_shortcuts_of = 0;  // atomic: the number of unloads when the shortcuts were last cleared
Mutex g_mutex;  // guards g_names, of which names that have an id no longer change, and writing shortcuts
constinit Names g_names;

// Neighbours are in different cache lines, as different threads may write them.
uint32_t PlaceOf(uint32_t correlation) {
  constexpr uint32_t kApart = 8;
  return (correlation % kApart * (kLaunches / kApart) + correlation / kApart) % kLaunches;
}

uint64_t& ShortcutOf(Tables& tables, const char* name) {
  return tables.shortcuts[(reinterpret_cast<uintptr_t>(name) * 0x9e3779b97f4a7c15 >> 40) % kShortcuts];
}

// The shortcut for the name of this id; 0 if the address is too large for one.
uint64_t Shortcut(const char* name, uint32_t id) {
  const uint64_t address = reinterpret_cast<uintptr_t>(name);
  return address >> (64 - kIdBits) != 0 ? 0 : address << kIdBits | id;
}

// GPUSONDE_GPU_OTHER_NAME if there is no shortcut.
uint32_t FindKnown(Tables& tables, const char* name) {
  if (__atomic_load_n(&g_shortcuts_of, __ATOMIC_ACQUIRE) != Unloads()) return GPUSONDE_GPU_OTHER_NAME;
  const uint64_t shortcut = __atomic_load_n(&ShortcutOf(tables, name), __ATOMIC_ACQUIRE);
  const auto id = static_cast<uint32_t>(shortcut & kIdMask);
  return shortcut == Shortcut(name, id) ? id : GPUSONDE_GPU_OTHER_NAME;
}

__attribute__((noinline)) uint32_t Learn(Tables& tables, const char* name) {
  const Locked locked(g_mutex);
  if (const uint32_t unloads = Unloads(); unloads != g_shortcuts_of) {
    g_names.ForgetPointers();
    for (uint64_t& shortcut : tables.shortcuts) __atomic_store_n(&shortcut, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&g_shortcuts_of, unloads, __ATOMIC_RELEASE);
  }
  const uint32_t id = g_names.Identify(name);
  if (id != GPUSONDE_GPU_OTHER_NAME)
    __atomic_store_n(&ShortcutOf(tables, name), Shortcut(name, id), __ATOMIC_RELEASE);
  return id;
}

__attribute__((noinline)) Tables* MakeTables() {
  const Locked locked(g_mutex);
  if (g_tables == nullptr)
    __atomic_store_n(&g_tables, static_cast<Tables*>(Pages(sizeof(Tables))), __ATOMIC_RELEASE);
  return g_tables;
}

}  // namespace

void NoteUnload() { __atomic_fetch_add(&g_unloads, 1, __ATOMIC_RELEASE); }

void NoteLaunch(uint32_t correlation, const char* name) {
  Tables* tables = __atomic_load_n(&g_tables, __ATOMIC_ACQUIRE);
  if (tables == nullptr) tables = MakeTables();
  if (tables == nullptr) return;
  uint32_t id = FindKnown(*tables, name);
  if (id == GPUSONDE_GPU_OTHER_NAME) id = Learn(*tables, name);
  __atomic_store_n(&tables->launches[PlaceOf(correlation)], uint64_t{correlation} << 32 | id,
                   __ATOMIC_RELEASE);
}

// Takes no lock either: sending the name may wait for a slow reader.
std::optional<uint32_t> InternLaunch(uint32_t correlation, Names& names, uint32_t session, Batch& out) {
  Tables* tables = __atomic_load_n(&g_tables, __ATOMIC_ACQUIRE);
  if (tables == nullptr) return std::nullopt;
  const uint64_t launch = __atomic_load_n(&tables->launches[PlaceOf(correlation)], __ATOMIC_ACQUIRE);
  const auto id = static_cast<uint32_t>(launch);
  if (launch >> 32 != correlation || id == GPUSONDE_GPU_OTHER_NAME) return std::nullopt;
  return names.InternFrom(g_names, id, session, out);
}

}  // namespace gpusonde::inject
