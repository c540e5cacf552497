// SPDX-License-Identifier: Apache-2.0
#include "inject/rivals.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

constexpr size_t kMaxSlots = 16;
constexpr uintptr_t kPageBytes = 4096;

// An entry of a library's global offset table.
struct Slot {
  ElfW(Addr) library;  // its load address
  void** entry;
  void* original;
  void* wrapper;
  uintptr_t read_only_begin;  // what the linker made read-only after relocation; empty for most
  uintptr_t read_only_end;
  bool redirected;
};

const Cupti* g_cupti = nullptr;
YieldFunction* g_yield = nullptr;
Slot g_slots[kMaxSlots];
size_t g_slot_count = 0;
unsigned long long g_libraries_added = 0;  // when all were last searched

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

// Our function in place of CUPTI's of this name; null for others.
void* WrapperOf(const char* name) {
  if (strncmp(name, "cuptiSubscribe", sizeof "cuptiSubscribe" - 1) != 0) return nullptr;
  if (strcmp(name, "cuptiSubscribe") == 0) return reinterpret_cast<void*>(SubscribeRival);
  if (strcmp(name, "cuptiSubscribe_v2") == 0 && g_cupti->subscribe_v2 != nullptr)
    return reinterpret_cast<void*>(SubscribeRivalV2);
  return nullptr;
}

// The loader makes pages read-only once they are relocated; a single store of 8 aligned bytes is atomic for
// the program's threads.
void Write(const Slot& slot, void* value) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(slot.entry) & ~(kPageBytes - 1);
  const bool read_only = reinterpret_cast<uintptr_t>(slot.entry) >= slot.read_only_begin &&
                         reinterpret_cast<uintptr_t>(slot.entry) < slot.read_only_end;
  auto* const start = At<void>(page);
  if (read_only && mprotect(start, kPageBytes, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(slot.entry, value, __ATOMIC_RELEASE);
  if (read_only) mprotect(start, kPageBytes, PROT_READ);
}

bool Known(void* const* entry) {
  for (size_t i = 0; i < g_slot_count; ++i)
    if (g_slots[i].entry == entry) return true;
  return false;
}

void AddSlots(const dl_phdr_info& library, const Dynamic& dynamic, const ElfW(Rela) * relocations,
              size_t count, const ElfW(Phdr) * read_only) {
  for (size_t i = 0; i < count && g_slot_count < kMaxSlots; ++i) {
    const uint64_t type = ELF64_R_TYPE(relocations[i].r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocations[i].r_info)];
    if (symbol.st_shndx != SHN_UNDEF) continue;
    void* const wrapper = WrapperOf(dynamic.strings + symbol.st_name);
    auto** const entry = At<void*>(library.dlpi_addr + relocations[i].r_offset);
    if (wrapper == nullptr || Known(entry)) continue;
    Slot& slot = g_slots[g_slot_count++];
    slot = {.library = library.dlpi_addr,
            .entry = entry,
            .original = nullptr,
            .wrapper = wrapper,
            .read_only_begin = 0,
            .read_only_end = 0,
            .redirected = false};
    if (read_only != nullptr) {
      slot.read_only_begin = library.dlpi_addr + read_only->p_vaddr;
      // As the loader does: a page that is read-only in part stays writable.
      slot.read_only_end = (slot.read_only_begin + read_only->p_memsz) & ~(kPageBytes - 1);
    }
  }
}

int FindSlots(dl_phdr_info* library, size_t, void*) {
  const ElfW(Phdr)* dynamic_header = nullptr;
  const ElfW(Phdr)* read_only = nullptr;
  for (size_t i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC) dynamic_header = &header;
    if (header.p_type == PT_GNU_RELRO) read_only = &header;
  }
  if (dynamic_header == nullptr) return 0;
  const Dynamic dynamic = ReadDynamic(*library, *dynamic_header);
  if (!dynamic.linked_with_cupti) return 0;
  AddSlots(*library, dynamic, dynamic.calls, dynamic.call_count, read_only);
  AddSlots(*library, dynamic, dynamic.relocations, dynamic.relocation_count, read_only);
  return 0;
}

int CountAdded(dl_phdr_info* library, size_t, void* argument) {
  *static_cast<unsigned long long*>(argument) = library->dlpi_adds;
  return 1;
}

// Runs within dl_iterate_phdr, which keeps the library mapped meanwhile.
template <void (*Change)(Slot&)>
int ChangeSlotsOf(dl_phdr_info* library, size_t, void*) {
  for (size_t i = 0; i < g_slot_count; ++i)
    if (g_slots[i].library == library->dlpi_addr) Change(g_slots[i]);
  return 0;
}

void Redirect(Slot& slot) {
  if (slot.redirected) return;
  slot.original = __atomic_load_n(slot.entry, __ATOMIC_ACQUIRE);
  Write(slot, slot.wrapper);
  slot.redirected = *slot.entry == slot.wrapper;
}

// The entry holds something else if the linker has bound the call meanwhile, or another tool has redirected
// it.
void Restore(Slot& slot) {
  if (slot.redirected && __atomic_load_n(slot.entry, __ATOMIC_ACQUIRE) == slot.wrapper)
    Write(slot, slot.original);
  slot.redirected = false;
}

}  // namespace

void RedirectRivals(const Cupti& cupti, YieldFunction* yield) {
  g_cupti = &cupti;
  g_yield = yield;
  unsigned long long added = 0;
  dl_iterate_phdr(CountAdded, &added);
  if (added != g_libraries_added) {
    g_libraries_added = added;
    StopRedirecting();
    g_slot_count = 0;  // libraries may have been unloaded, too
    dl_iterate_phdr(FindSlots, nullptr);
  }
  if (g_slot_count != 0) dl_iterate_phdr(ChangeSlotsOf<Redirect>, nullptr);
}

void StopRedirecting() {
  bool any = false;
  for (size_t i = 0; i < g_slot_count; ++i) any = any || g_slots[i].redirected;
  if (any) dl_iterate_phdr(ChangeSlotsOf<Restore>, nullptr);
}

}  // namespace gpusonde::inject
