// SPDX-License-Identifier: Apache-2.0
#include "inject/rivals.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

constexpr size_t kMaxSlots = 16;
constexpr uintptr_t kPageBytes = 4096;

// An entry of a library's global offset table.
struct Slot {
  ElfW(Addr) library;  // its load address
  const ElfW(Phdr) * headers;
  size_t header_count;
  void** entry;
  void* wrapper;
  void* wrapped;   // CUPTI's function
  void* original;  // what the wrapper has replaced; null: nothing
  bool lazy;       // it may be bound at the first call
  bool read_only;  // the loader makes its page read-only when it has relocated the library
};

const Cupti* g_cupti = nullptr;
YieldFunction* g_yield = nullptr;
Slot g_slots[kMaxSlots];
size_t g_slot_count = 0;
Slot g_earlier_slots[kMaxSlots];  // of the search before
size_t g_earlier_slot_count = 0;
// The numbers of libraries that were added and removed by the last search: until one changes, the slots are
// as they were found.
unsigned long long g_added = 0;
unsigned long long g_removed = 0;

// What is needed of a library's dynamic section (ELF gABI, chapter 5).
struct Dynamic {
  const ElfW(Rela) * calls;  // DT_JMPREL
  size_t call_count;
  const ElfW(Rela) * relocations;  // DT_RELA after the relative ones, which name no symbol
  size_t relocation_count;
  const ElfW(Sym) * symbols;
  const char* strings;
  bool linked_with_cupti;
};

template <class Pointer>
Pointer* At(ElfW(Addr) address) {
  return reinterpret_cast<Pointer*>(address);  // NOLINT(performance-no-int-to-ptr): as the linker has it
}

// Some linkers leave addresses as in the file.
template <class Pointer>
Pointer* Address(const dl_phdr_info& library, ElfW(Addr) value) {
  return At<Pointer>(value < library.dlpi_addr ? value + library.dlpi_addr : value);
}

Dynamic ReadDynamic(const dl_phdr_info& library, const ElfW(Phdr) & header) {
  Dynamic found{};
  size_t relocation_bytes = 0;
  size_t relative = 0;
  const auto* const entries = At<const ElfW(Dyn)>(library.dlpi_addr + header.p_vaddr);
  for (const auto* entry = entries; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_JMPREL:
        found.calls = Address<const ElfW(Rela)>(library, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        found.call_count = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_RELA:
        found.relocations = Address<const ElfW(Rela)>(library, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        relocation_bytes = entry->d_un.d_val;
        break;
      case DT_RELACOUNT:
        relative = entry->d_un.d_val;
        break;
      case DT_SYMTAB:
        found.symbols = Address<const ElfW(Sym)>(library, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        found.strings = Address<const char>(library, entry->d_un.d_ptr);
        break;
      default:
        break;
    }
  }
  found.relocation_count = relocation_bytes / sizeof(ElfW(Rela));
  if (found.relocation_count < relative) relative = found.relocation_count;
  found.relocations += relative;
  found.relocation_count -= relative;
  if (found.symbols == nullptr || found.strings == nullptr) return {};
  constexpr char kCupti[] = "libcupti.so";
  for (const auto* entry = entries; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED &&
        strncmp(found.strings + entry->d_un.d_val, kCupti, sizeof kCupti - 1) == 0)
      found.linked_with_cupti = true;
  return found;
}

struct CallerSearch {
  uintptr_t address;
  char name[NAME_MAX + 1];
};

int FindCaller(dl_phdr_info* library, size_t, void* argument) {
  auto& search = *static_cast<CallerSearch*>(argument);
  for (size_t i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    const uintptr_t begin = library->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || search.address < begin || search.address - begin >= header.p_memsz)
      continue;
    strncpy(search.name, FileName(library->dlpi_name), sizeof search.name - 1);
    return 1;
  }
  return 0;
}

void Yield(const void* caller) {
  CallerSearch search{.address = reinterpret_cast<uintptr_t>(caller), .name = {}};
  dl_iterate_phdr(FindCaller, &search);
  g_yield(search.name);
}

gpusonde_cupti_result SubscribeRival(gpusonde_cupti_subscriber_handle* subscriber,
                                     gpusonde_cupti_callback* callback, void* user) {
  Yield(__builtin_return_address(0));
  return g_cupti->subscribe(subscriber, callback, user);
}

gpusonde_cupti_result SubscribeRivalV2(gpusonde_cupti_subscriber_handle* subscriber,
                                       gpusonde_cupti_callback* callback, void* user,
                                       gpusonde_cupti_subscriber_params* params) {
  Yield(__builtin_return_address(0));
  return g_cupti->subscribe_v2(subscriber, callback, user, params);
}

struct Replacement {
  void* wrapper;
  void* wrapped;
};

// Our function in place of CUPTI's of this name, and CUPTI's; null for others.
Replacement ReplacementOf(const char* name) {
  if (strncmp(name, "cuptiSubscribe", sizeof "cuptiSubscribe" - 1) != 0) return {};
  if (strcmp(name, "cuptiSubscribe") == 0)
    return {reinterpret_cast<void*>(SubscribeRival), reinterpret_cast<void*>(g_cupti->subscribe)};
  if (strcmp(name, "cuptiSubscribe_v2") == 0 && g_cupti->subscribe_v2 != nullptr)
    return {reinterpret_cast<void*>(SubscribeRivalV2), reinterpret_cast<void*>(g_cupti->subscribe_v2)};
  return {};
}

bool Known(void* const* entry) {
  for (size_t i = 0; i < g_slot_count; ++i)
    if (g_slots[i].entry == entry) return true;
  return false;
}

// What our wrapper has replaced in this entry, by the search before. An entry of a library that has been
// loaded in the place of another one does not hold the wrapper.
void* OriginalOf(const Slot& slot) {
  if (__atomic_load_n(slot.entry, __ATOMIC_ACQUIRE) != slot.wrapper) return nullptr;
  for (size_t i = 0; i < g_earlier_slot_count; ++i)
    if (g_earlier_slots[i].entry == slot.entry) return g_earlier_slots[i].original;
  return nullptr;
}

// As the loader rounds it: a page that is read-only in part stays writable.
bool BecomesReadOnly(const dl_phdr_info& library, const ElfW(Phdr) * read_only, void* const* entry) {
  if (read_only == nullptr) return false;
  const uintptr_t begin = library.dlpi_addr + read_only->p_vaddr;
  const uintptr_t end = begin + read_only->p_memsz;
  const auto address = reinterpret_cast<uintptr_t>(entry);
  return address >= (begin & ~(kPageBytes - 1)) && address < (end & ~(kPageBytes - 1));
}

void AddSlots(const dl_phdr_info& library, const Dynamic& dynamic, const ElfW(Rela) * relocations,
              size_t count, const ElfW(Phdr) * read_only) {
  for (size_t i = 0; i < count && g_slot_count < kMaxSlots; ++i) {
    const uint64_t type = ELF64_R_TYPE(relocations[i].r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocations[i].r_info)];
    if (symbol.st_shndx != SHN_UNDEF) continue;
    const Replacement replacement = ReplacementOf(dynamic.strings + symbol.st_name);
    auto** const entry = At<void*>(library.dlpi_addr + relocations[i].r_offset);
    if (replacement.wrapper == nullptr || Known(entry)) continue;
    Slot& slot = g_slots[g_slot_count++];
    slot = {.library = library.dlpi_addr,
            .headers = library.dlpi_phdr,
            .header_count = library.dlpi_phnum,
            .entry = entry,
            .wrapper = replacement.wrapper,
            .wrapped = replacement.wrapped,
            .original = nullptr,
            .lazy = type == R_X86_64_JUMP_SLOT,
            .read_only = BecomesReadOnly(library, read_only, entry)};
    slot.original = OriginalOf(slot);
  }
}

void FindSlots(const dl_phdr_info& library) {
  const ElfW(Phdr)* dynamic_header = nullptr;
  const ElfW(Phdr)* read_only = nullptr;
  for (size_t i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC) dynamic_header = &header;
    if (header.p_type == PT_GNU_RELRO) read_only = &header;
  }
  if (dynamic_header == nullptr) return;
  const Dynamic dynamic = ReadDynamic(library, *dynamic_header);
  if (!dynamic.linked_with_cupti) return;
  AddSlots(library, dynamic, dynamic.calls, dynamic.call_count, read_only);
  AddSlots(library, dynamic, dynamic.relocations, dynamic.relocation_count, read_only);
}

bool IsCodeOfLibrary(const Slot& slot, const void* address) {
  for (size_t i = 0; i < slot.header_count; ++i) {
    const ElfW(Phdr)& header = slot.headers[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0 &&
        reinterpret_cast<uintptr_t>(address) - (slot.library + header.p_vaddr) < header.p_memsz)
      return true;
  }
  return false;
}

// Whether the loader has relocated the entry and leaves it alone from now on, but for binding it at a call. A
// library is visible as soon as it is mapped, and relocating it and what it depends on takes up to seconds:
// until then the entry holds an address as in the file, 0, or whatever the loader is about to overwrite.
bool IsRelocated(const Slot& slot, const void* value) {
  return value == slot.wrapped || (slot.lazy && IsCodeOfLibrary(slot, value));
}

enum class Access : uint8_t { kReadOnly, kWritable, kUnknown };

// Asks the kernel for an atomic `|= 0` that fails where the page is read-only. It changes nothing, not even
// for a loader that writes the entry at this moment.
Access AccessOf(void** entry) {
  uint32_t unused = 0;
  constexpr unsigned kOrWithZero = static_cast<unsigned>(FUTEX_OP_OR) << 28;
  if (syscall(SYS_futex, &unused, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, entry, kOrWithZero) >= 0)
    return Access::kWritable;
  return errno == EFAULT ? Access::kReadOnly : Access::kUnknown;
}

// Replaces an entry that IsRelocated. False if it is not the time for it. A store of 8 aligned bytes is
// atomic for the program's threads. A page that becomes read-only must be so already: its other entries may
// be relocated later than this one, and the loader would fault at them once we make it read-only. It writes
// to such a page no more, and others are not touched but for the entry, so no library that is being relocated
// or bound by the program's other threads is affected.
bool Replace(const Slot& slot, void* from, void* to) {
  if (AccessOf(slot.entry) != (slot.read_only ? Access::kReadOnly : Access::kWritable)) return false;
  auto* const page = At<void>(reinterpret_cast<uintptr_t>(slot.entry) & ~(kPageBytes - 1));
  if (slot.read_only && mprotect(page, kPageBytes, PROT_READ | PROT_WRITE) != 0) return false;
  const bool replaced =
      __atomic_compare_exchange_n(slot.entry, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  if (slot.read_only) mprotect(page, kPageBytes, PROT_READ);
  return replaced;
}

// The program may have bound the call meanwhile, and so undone it.
void Redirect(Slot& slot) {
  void* const value = __atomic_load_n(slot.entry, __ATOMIC_ACQUIRE);
  if (value != slot.wrapper && IsRelocated(slot, value) && Replace(slot, value, slot.wrapper))
    slot.original = value;
}

// The entry holds something else if the program has bound the call meanwhile, or another tool has redirected
// it.
void Restore(Slot& slot) {
  if (slot.original == nullptr) return;
  if (__atomic_load_n(slot.entry, __ATOMIC_ACQUIRE) != slot.wrapper ||
      Replace(slot, slot.wrapper, slot.original))
    slot.original = nullptr;
}

// Libraries may have been loaded and unloaded, and others may be in their place.
bool HaveLibrariesChanged(const dl_phdr_info& any) {
  if (any.dlpi_adds == g_added && any.dlpi_subs == g_removed) return false;
  g_added = any.dlpi_adds;
  g_removed = any.dlpi_subs;
  return true;
}

// Visits the slots of all libraries that are loaded now. The caller is dl_iterate_phdr, which keeps each
// library mapped meanwhile. Unless some have changed, only the first is looked at: a child that the program
// forks finds the loader's lock taken for ever if it was at that moment.
template <void (*Change)(Slot&)>
int ChangeSlots(dl_phdr_info* library, size_t, void* argument) {
  auto& searches = *static_cast<bool*>(argument);
  if (!searches && !HaveLibrariesChanged(*library)) {
    for (size_t i = 0; i < g_slot_count; ++i) Change(g_slots[i]);
    return 1;
  }
  if (!searches) {
    searches = true;
    memcpy(g_earlier_slots, g_slots, sizeof g_slots);
    g_earlier_slot_count = g_slot_count;
    g_slot_count = 0;
  }
  const size_t known = g_slot_count;
  FindSlots(*library);
  for (size_t i = known; i < g_slot_count; ++i) Change(g_slots[i]);
  return 0;
}

}  // namespace

void RedirectRivals(const Cupti& cupti, YieldFunction* yield) {
  g_cupti = &cupti;
  g_yield = yield;
  bool searches = false;
  dl_iterate_phdr(ChangeSlots<Redirect>, &searches);
}

void StopRedirecting() {
  bool any = false;
  for (size_t i = 0; i < g_slot_count; ++i) any = any || g_slots[i].original != nullptr;
  bool searches = false;
  if (any) dl_iterate_phdr(ChangeSlots<Restore>, &searches);
}

}  // namespace gpusonde::inject
