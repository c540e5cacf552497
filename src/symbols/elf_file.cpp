// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "symbols/elf_handle.h"
#include "symbols/go_section.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxSymbols = 50'000'000;
constexpr size_t kMaxNameBytes = 8192;  // the longest mangled name seen in libtorch is 4,300
constexpr size_t kMaxBuildIdBytes = 64;
// How many symbols before the nearest are looked at for one that is long enough to cover the address: nested
// symbols (assembly labels inside functions) are rare and shallow.
constexpr size_t kMaxNesting = 16;

// Looks through one note segment or section. Format: elf(5), "Notes".
std::string FindBuildId(Elf_Data* data) {
  if (data == nullptr) return {};
  GElf_Nhdr note;
  size_t position = 0, name = 0, description = 0;
  while ((position = gelf_getnote(data, position, &note, &name, &description)) > 0) {
    const auto* bytes = static_cast<const uint8_t*>(data->d_buf);
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || std::memcmp(bytes + name, "GNU", 4) != 0)
      continue;
    std::string hex;
    for (size_t i = 0; i < std::min<size_t>(note.n_descsz, kMaxBuildIdBytes); ++i)
      hex += fmt::format("{:02x}", bytes[description + i]);
    return hex;
  }
  return {};
}

std::string BuildIdOf(Elf* elf) {
  size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0) return {};
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_NOTE) continue;
    const auto offset = static_cast<int64_t>(header.p_offset);
    std::string id = FindBuildId(
        elf_getdata_rawchunk(elf, offset, header.p_filesz, header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
    if (!id.empty()) return id;
  }
  return {};
}

// Global names before weak before local ones: that is what people call the function. Go's own come last: they
// are the same ones, less what tells two versions of a function apart.
uint8_t RankOf(uint8_t info) {
  switch (GELF_ST_BIND(info)) {
    case STB_GLOBAL:
      return 0;
    case STB_WEAK:
      return 1;
    default:
      return 2;
  }
}

constexpr uint8_t kGoRank = 3;
constexpr uint8_t kPltRank = 4;
// Longer than any function: what is farther from the last known beginning belongs to code without a
// description.
constexpr uint64_t kMaxFunctionBytes = uint64_t{4} << 20;

bool NamesCode(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

}  // namespace

Result<std::string> ReadBuildId(int fd) {
  ASSIGN_OR_RETURN(ElfHandle elf, BeginElf(fd, "file"));
  return BuildIdOf(elf.get());
}

Result<ElfFile> ElfFile::Load(Fd fd, const std::string& name, std::optional<Fd> debug_file) {
  ASSIGN_OR_RETURN(ElfHandle elf, BeginElf(fd.get(), name));
  ElfFile file;
  file.build_id_ = BuildIdOf(elf.get());
  TRY(file.ReadSegments(elf.get()));
  TRY(file.ReadSymbols(elf.get(), name, false));
  file.ReadGoFunctions(elf.get());
  file.ReadCode(elf.get());
  elf.reset();
  if (debug_file.has_value()) {
    ASSIGN_OR_RETURN(const ElfHandle debug, BeginElf(debug_file->get(), name + "'s debug file"));
    TRY(file.ReadSymbols(debug.get(), name, true));
    file.debug_fd_ = std::move(*debug_file);
  }
  file.SortSymbols();
  file.fd_ = std::move(fd);
  return file;
}

Status ElfFile::ReadSegments(void* handle) {
  auto* elf = static_cast<Elf*>(handle);
  size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0) return {};
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
      segments_.push_back({header.p_offset, header.p_vaddr, header.p_filesz});
  }
  return {};
}

Status ElfFile::ReadSymbols(void* handle, const std::string& name, bool is_debug_file) {
  auto* elf = static_cast<Elf*>(handle);
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    GElf_Shdr strings;
    Elf_Scn* string_section = elf_getscn(elf, header.sh_link);
    if (string_section == nullptr || gelf_getshdr(string_section, &strings) == nullptr) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;

    const size_t count = data->d_size / header.sh_entsize;
    if (count > kMaxSymbols || entries_.size() + count > kMaxSymbols)
      return Fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} symbols", name, kMaxSymbols));
    entries_.reserve(entries_.size() + count);
    for (size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || !NamesCode(symbol)) continue;
      if (symbol.st_name >= strings.sh_size) continue;
      entries_.push_back({.address = symbol.st_value,
                          .name_position = strings.sh_offset + symbol.st_name,
                          .size = static_cast<uint32_t>(
                              std::min<uint64_t>(symbol.st_size, std::numeric_limits<uint32_t>::max())),
                          .rank = RankOf(symbol.st_info),
                          .in_debug_file = is_debug_file,
                          .plt = false});
    }
  }
  return {};
}

void ElfFile::ReadGoFunctions(void* handle) {
  const std::optional<GoSection> go = FindGoSection(static_cast<Elf*>(handle));
  if (!go.has_value()) return;
  entries_.reserve(entries_.size() + go->table.size());
  for (size_t i = 0; i < go->table.size(); ++i) {
    const GoTable::Function function = go->table.At(i);
    if (function.end > function.start)
      entries_.push_back({.address = function.start,
                          .name_position = go->file_offset + function.name,
                          .size = static_cast<uint32_t>(function.end - function.start),
                          .rank = kGoRank,
                          .in_debug_file = false,
                          .plt = false});
  }
}

void ElfFile::ReadCode(void* handle) {
  auto* elf = static_cast<Elf*>(handle);
  sections_ = FindCodeSections(elf);
  function_starts_ = FindFunctionStarts(elf);
  for (const PltStub& stub : FindPltStubs(elf))
    entries_.push_back({.address = stub.address,
                        .name_position = stub.name_position,
                        .size = stub.size,
                        .rank = kPltRank,
                        .in_debug_file = false,
                        .plt = true});
}

void ElfFile::SortSymbols() {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.address, a.rank, a.name_position) < std::tie(b.address, b.rank, b.name_position);
  });
  const auto aliases = std::ranges::unique(entries_, {}, &Entry::address);
  entries_.erase(aliases.begin(), aliases.end());
  entries_.shrink_to_fit();
}

std::optional<Symbol> ElfFile::Find(uint64_t file_offset) const {
  const Segment* segment = SegmentAt(file_offset);
  if (segment == nullptr) return std::nullopt;
  const uint64_t address = file_offset - segment->file_offset + segment->address;

  const auto after = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  const auto first = after - std::min<ptrdiff_t>(after - entries_.begin(), kMaxNesting);
  for (auto entry = after; entry != first;) {
    --entry;
    const bool reaches_to_next =
        entry->size == 0 && std::next(entry) == after && SameSection(entry->address, address);
    if (reaches_to_next || address - entry->address < entry->size)
      return Symbol{entry->address, entry->size, NameOf(*entry)};
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::FindFunctionStart(uint64_t file_offset) const {
  const Segment* segment = SegmentAt(file_offset);
  if (segment == nullptr) return std::nullopt;
  const uint64_t address = file_offset - segment->file_offset + segment->address;
  const auto after = std::ranges::upper_bound(function_starts_, address);
  if (after == function_starts_.begin()) return std::nullopt;
  const uint64_t start = *std::prev(after);
  if (start < segment->address || address - start > kMaxFunctionBytes || !SameSection(start, address))
    return std::nullopt;
  return start - segment->address + segment->file_offset;
}

const ElfFile::Segment* ElfFile::SegmentAt(uint64_t file_offset) const {
  const auto segment = std::ranges::find_if(segments_, [&](const Segment& candidate) {
    return file_offset >= candidate.file_offset && file_offset - candidate.file_offset < candidate.size;
  });
  return segment == segments_.end() ? nullptr : &*segment;
}

// Also where the file has no table of sections.
bool ElfFile::SameSection(uint64_t address, uint64_t other) const {
  const auto section = std::ranges::find_if(
      sections_, [&](const CodeSection& each) { return address >= each.begin && address < each.end; });
  return section == sections_.end() || (other >= section->begin && other < section->end);
}

std::string ElfFile::NameOf(const Entry& entry) const {
  char buffer[kMaxNameBytes];
  const ssize_t count = ::pread(entry.in_debug_file ? debug_fd_.get() : fd_.get(), buffer, sizeof buffer,
                                static_cast<off_t>(entry.name_position));
  if (count <= 0) return {};
  std::string name(buffer, ::strnlen(buffer, static_cast<size_t>(count)));
  return entry.plt ? name + "@plt" : name;
}

}  // namespace gpusonde::symbols
