// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_code.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxStubs = 200'000;  // libtorch has 20,000
constexpr size_t kMaxStubBytes = 32;
constexpr size_t kMaxFunctions = 1'000'000;               // libtorch has 400,000
constexpr uint64_t kMaxSymbolTable = uint64_t{64} << 20;  // libtorch's dynamic one has 10 MB
constexpr size_t kStubAlignment = 8;

template <class T>
T Load(std::span<const std::byte> bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Slots of the global offset table that hold functions of other files, with the positions of their names.
Result<std::unordered_map<uint64_t, uint64_t>> FindSlots(ElfImage& image) {
  std::unordered_map<uint64_t, uint64_t> slots;
  std::vector<std::byte> symbols;  // of the table that the section before refers to, mostly the same one
  uint32_t symbols_link = 0;
  for (const ElfImage::Section& relocations : image.sections()) {
    if (relocations.type != SHT_RELA || (relocations.flags & SHF_ALLOC) == 0) continue;
    const ElfImage::Section* table = image.SectionAt(relocations.link);
    const ElfImage::Section* strings = table == nullptr ? nullptr : image.SectionAt(table->link);
    if (strings == nullptr || relocations.link == 0) continue;
    if (symbols_link != relocations.link) {
      symbols_link = relocations.link;
      ASSIGN_OR_RETURN(symbols, image.Bytes(table->offset, table->size, kMaxSymbolTable));
    }
    TRY(image.ForEach<Elf64_Rela>(relocations, [&](const Elf64_Rela& relocation) -> Result<bool> {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) return true;
      const uint64_t at = ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym);
      if (at + sizeof(Elf64_Sym) > symbols.size()) return true;
      const auto symbol = Load<Elf64_Sym>(symbols, at);
      if (symbol.st_name != 0 && symbol.st_name < strings->size)
        slots[relocation.r_offset] = strings->offset + symbol.st_name;
      return slots.size() < kMaxStubs;
    }));
  }
  return slots;
}

// The slot that the code at `at` jumps through: [endbr64] [bnd] jmp *displacement(%rip).
std::optional<uint64_t> JumpSlot(std::span<const std::byte> code, size_t at, uint64_t address) {
  constexpr uint32_t kEndbr64 = 0xFA1E0FF3;
  constexpr std::byte kBnd{0xF2};
  constexpr uint16_t kIndirectJump = 0x25FF;
  constexpr size_t kJump = 6;
  size_t place = at;
  if (place + sizeof kEndbr64 <= code.size() && Load<uint32_t>(code, place) == kEndbr64)
    place += sizeof kEndbr64;
  if (place < code.size() && code[place] == kBnd) ++place;
  if (place + kJump > code.size() || Load<uint16_t>(code, place) != kIndirectJump) return std::nullopt;
  const auto displacement = static_cast<uint64_t>(int64_t{Load<int32_t>(code, place + 2)});
  return address + (place - at) + kJump + displacement;
}

}  // namespace

Result<std::vector<PltStub>> FindPltStubs(ElfImage& image) {
  std::vector<PltStub> stubs;
  ASSIGN_OR_RETURN(const auto slots, FindSlots(image));
  if (slots.empty()) return stubs;
  for (const ElfImage::Section& section : image.sections()) {
    if (section.type != SHT_PROGBITS || (section.flags & SHF_EXECINSTR) == 0 ||
        !section.name.starts_with(".plt"))
      continue;
    ASSIGN_OR_RETURN(const std::vector<std::byte> code,
                     image.Bytes(section.offset, section.size, kMaxStubs * kMaxStubBytes));
    const size_t first = stubs.size();
    for (size_t at = 0; at < code.size() && stubs.size() < kMaxStubs; at += kStubAlignment) {
      const std::optional<uint64_t> slot = JumpSlot(code, at, section.address + at);
      if (!slot.has_value()) continue;
      const auto found = slots.find(*slot);
      if (found != slots.end())
        stubs.push_back({.address = section.address + at, .name_position = found->second});
    }
    for (size_t i = first; i < stubs.size(); ++i) {
      const uint64_t end = i + 1 < stubs.size() ? stubs[i + 1].address : section.address + code.size();
      stubs[i].size = static_cast<uint32_t>(end - stubs[i].address);
    }
  }
  std::ranges::sort(stubs, {}, &PltStub::address);
  return stubs;
}

// Format: Linux Standard Base Core, "The .eh_frame_hdr section". Linkers write one encoding of it: a version
// of 1, the number of entries as udata4, and entries of (function, description), both sdata4 relative to the
// section.
Result<std::vector<uint32_t>> FindFunctionStarts(ElfImage& image) {
  constexpr std::byte kVersion{1}, kCount{0x03}, kEntries{0x3b};
  constexpr size_t kHeader = 12, kEntry = 8;
  std::vector<uint32_t> starts;
  for (const ElfImage::Segment& segment : image.segments()) {
    if (segment.p_type != PT_GNU_EH_FRAME) continue;
    const uint64_t size = std::min<uint64_t>(segment.p_filesz, kHeader + kMaxFunctions * kEntry);
    ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, image.Bytes(segment.p_offset, size));
    if (bytes.size() < kHeader || bytes[0] != kVersion || bytes[2] != kCount || bytes[3] != kEntries)
      continue;
    const size_t count = std::min<size_t>(Load<uint32_t>(bytes, 8), (bytes.size() - kHeader) / kEntry);
    starts.reserve(count);
    for (size_t entry = 0; entry < count; ++entry) {
      const auto offset = int64_t{Load<int32_t>(bytes, kHeader + entry * kEntry)};
      const uint64_t start = segment.p_vaddr + static_cast<uint64_t>(offset);
      if (start <= std::numeric_limits<uint32_t>::max()) starts.push_back(static_cast<uint32_t>(start));
    }
    break;  // there is one
  }
  std::ranges::sort(starts);
  return starts;
}

std::vector<CodeSection> FindCodeSections(const ElfImage& image) {
  constexpr size_t kMaxCodeSections = 1000;  // for each look-up they are gone through
  std::vector<CodeSection> sections;
  for (const ElfImage::Section& section : image.sections())
    if ((section.flags & SHF_EXECINSTR) != 0 && sections.size() < kMaxCodeSections)
      sections.push_back({section.address, section.address + section.size});
  return sections;
}

}  // namespace gpusonde::symbols
