// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_code.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxStubs = 1'000'000;      // libtorch has 20,000
constexpr size_t kMaxFunctions = 5'000'000;  // libtorch has 400,000
constexpr size_t kStubAlignment = 8;

template <class T>
T Load(std::span<const uint8_t> bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::span<const uint8_t> BytesOf(const Elf_Data* data) {
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const uint8_t*>(data->d_buf), data->d_size};
}

void ForEachSection(Elf* elf, const std::function<void(Elf_Scn*, const GElf_Shdr&)>& visit) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr) visit(section, header);
  }
}

// Where the symbols that a relocation section refers to have their names.
struct SymbolTable {
  Elf_Data* symbols = nullptr;
  uint64_t strings_offset = 0;
  uint64_t strings_size = 0;
};

std::optional<SymbolTable> SymbolsOf(Elf* elf, const GElf_Shdr& relocations) {
  GElf_Shdr table, strings;
  Elf_Scn* section = elf_getscn(elf, relocations.sh_link);
  if (section == nullptr || gelf_getshdr(section, &table) == nullptr) return std::nullopt;
  Elf_Scn* string_section = elf_getscn(elf, table.sh_link);
  if (string_section == nullptr || gelf_getshdr(string_section, &strings) == nullptr) return std::nullopt;
  Elf_Data* symbols = elf_getdata(section, nullptr);
  if (symbols == nullptr) return std::nullopt;
  return SymbolTable{symbols, strings.sh_offset, strings.sh_size};
}

// Slots of the global offset table that hold functions of other files, with the positions of their names.
std::unordered_map<uint64_t, uint64_t> FindSlots(Elf* elf) {
  std::unordered_map<uint64_t, uint64_t> slots;
  ForEachSection(elf, [&](Elf_Scn* section, const GElf_Shdr& header) {
    if (header.sh_type != SHT_RELA || header.sh_entsize == 0 || (header.sh_flags & SHF_ALLOC) == 0) return;
    const std::optional<SymbolTable> table = SymbolsOf(elf, header);
    Elf_Data* data = table.has_value() ? elf_getdata(section, nullptr) : nullptr;
    if (data == nullptr) return;
    const size_t count = data->d_size / header.sh_entsize;
    for (size_t i = 0; i < count && slots.size() < kMaxStubs; ++i) {
      GElf_Rela relocation;
      if (gelf_getrela(data, static_cast<int>(i), &relocation) == nullptr) return;
      const auto type = GELF_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      GElf_Sym symbol;
      if (gelf_getsym(table->symbols, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr)
        continue;
      if (symbol.st_name == 0 || symbol.st_name >= table->strings_size) continue;
      slots[relocation.r_offset] = table->strings_offset + symbol.st_name;
    }
  });
  return slots;
}

// The slot that the code at `at` jumps through: [endbr64] [bnd] jmp *displacement(%rip).
std::optional<uint64_t> JumpSlot(std::span<const uint8_t> code, size_t at, uint64_t address) {
  constexpr uint8_t kEndbr64[] = {0xF3, 0x0F, 0x1E, 0xFA};
  constexpr size_t kJump = 6;
  size_t place = at;
  if (place + sizeof kEndbr64 <= code.size() && std::memcmp(&code[place], kEndbr64, sizeof kEndbr64) == 0)
    place += sizeof kEndbr64;
  if (place < code.size() && code[place] == 0xF2) ++place;
  if (place + kJump > code.size() || code[place] != 0xFF || code[place + 1] != 0x25) return std::nullopt;
  const auto displacement = static_cast<uint64_t>(int64_t{Load<int32_t>(code, place + 2)});
  return address + (place - at) + kJump + displacement;
}

}  // namespace

std::vector<PltStub> FindPltStubs(Elf* elf) {
  std::vector<PltStub> stubs;
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return stubs;
  const std::unordered_map<uint64_t, uint64_t> slots = FindSlots(elf);
  if (slots.empty()) return stubs;
  ForEachSection(elf, [&](Elf_Scn* section, const GElf_Shdr& header) {
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (header.sh_type != SHT_PROGBITS || (header.sh_flags & SHF_EXECINSTR) == 0 || name == nullptr ||
        !std::string_view(name).starts_with(".plt"))
      return;
    const std::span<const uint8_t> code = BytesOf(elf_getdata(section, nullptr));
    const size_t first = stubs.size();
    for (size_t at = 0; at < code.size() && stubs.size() < kMaxStubs; at += kStubAlignment) {
      const std::optional<uint64_t> slot = JumpSlot(code, at, header.sh_addr + at);
      if (!slot.has_value()) continue;
      const auto found = slots.find(*slot);
      if (found != slots.end())
        stubs.push_back({.address = header.sh_addr + at, .name_position = found->second});
    }
    for (size_t i = first; i < stubs.size(); ++i) {
      const uint64_t end = i + 1 < stubs.size() ? stubs[i + 1].address : header.sh_addr + code.size();
      stubs[i].size = static_cast<uint32_t>(end - stubs[i].address);
    }
  });
  std::ranges::sort(stubs, {}, &PltStub::address);
  return stubs;
}

// Format: Linux Standard Base Core, "The .eh_frame_hdr section". Linkers write one encoding of it: a version
// of 1, the number of entries as udata4, and entries of (function, description), both sdata4 relative to the
// section.
std::vector<uint32_t> FindFunctionStarts(Elf* elf) {
  constexpr uint8_t kCount = 0x03, kEntries = 0x3b;
  constexpr size_t kHeader = 12, kEntry = 8;
  std::vector<uint32_t> starts;
  size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0) return starts;
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_GNU_EH_FRAME)
      continue;
    const std::span<const uint8_t> bytes = BytesOf(
        elf_getdata_rawchunk(elf, static_cast<int64_t>(header.p_offset), header.p_filesz, ELF_T_BYTE));
    if (bytes.size() < kHeader || bytes[0] != 1 || bytes[2] != kCount || bytes[3] != kEntries) continue;
    const size_t count =
        std::min<size_t>({Load<uint32_t>(bytes, 8), (bytes.size() - kHeader) / kEntry, kMaxFunctions});
    starts.reserve(count);
    for (size_t entry = 0; entry < count; ++entry) {
      const auto offset = int64_t{Load<int32_t>(bytes, kHeader + entry * kEntry)};
      const uint64_t start = header.p_vaddr + static_cast<uint64_t>(offset);
      if (start <= std::numeric_limits<uint32_t>::max()) starts.push_back(static_cast<uint32_t>(start));
    }
  }
  std::ranges::sort(starts);
  return starts;
}

std::vector<CodeSection> FindCodeSections(Elf* elf) {
  constexpr size_t kMaxSections = 1000;  // for each look-up they are gone through
  std::vector<CodeSection> sections;
  ForEachSection(elf, [&](Elf_Scn*, const GElf_Shdr& header) {
    if ((header.sh_flags & SHF_EXECINSTR) != 0 && sections.size() < kMaxSections)
      sections.push_back({header.sh_addr, header.sh_addr + header.sh_size});
  });
  return sections;
}

}  // namespace gpusonde::symbols
