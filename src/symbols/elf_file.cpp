// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>

#include "base/log.h"
#include "base/packing.h"
#include "symbols/go_section.h"

namespace gpusonde::symbols {
namespace {

// Functions of one file and its debug file: 24 bytes each. libxul with all its symbols has 600,000.
constexpr size_t kMaxSymbols = 4'000'000;
constexpr size_t kMaxNameBytes = 8192;  // the longest mangled name seen in libtorch is 4,300
constexpr size_t kMaxBuildIdBytes = 64;
constexpr uint64_t kMaxNoteBytes = uint64_t{1} << 20;  // of all segments together
// How many symbols before the nearest are looked at for one that is long enough to cover the address: nested
// symbols (assembly labels inside functions) are rare and shallow.
constexpr size_t kMaxNesting = 16;

// Looks through one segment of notes, padded to `alignment`. Format: elf(5), "Notes".
std::string FindBuildId(std::span<const std::byte> notes, uint64_t alignment) {
  const auto padded = [alignment](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, &notes[at], sizeof note);
    const uint64_t name = at + sizeof note;
    const uint64_t description = padded(name + note.n_namesz), end = description + note.n_descsz;
    if (end > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(&notes[name], "GNU", 4) == 0) {
      std::string hex;
      for (const std::byte byte :
           notes.subspan(description, std::min<size_t>(note.n_descsz, kMaxBuildIdBytes)))
        hex += fmt::format("{:02x}", byte);
      return hex;
    }
    at = padded(end);
  }
  return {};
}

Result<std::string> BuildIdOf(ElfImage& image) {
  uint64_t left = kMaxNoteBytes;
  for (const ElfImage::Segment& segment : image.segments()) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > left) continue;
    left -= segment.p_filesz;
    ASSIGN_OR_RETURN(const auto notes, image.Bytes(segment.p_offset, segment.p_filesz));
    std::string id = FindBuildId(notes, segment.p_align == 8 ? 8 : 4);
    if (!id.empty()) return id;
  }
  return std::string();
}

// Global names before weak before local ones: that is what people call the function. Go's own come last: they
// are the same ones, less what tells two versions of a function apart.
uint8_t RankOf(uint8_t info) {
  switch (ELF64_ST_BIND(info)) {
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

bool NamesCode(const Elf64_Sym& symbol) {
  const int type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

}  // namespace

Result<std::string> ReadBuildId(int fd) {
  ASSIGN_OR_RETURN(ElfImage image, ElfImage::Read(fd, "file"));
  return BuildIdOf(image);
}

Result<ElfFile> ElfFile::Load(Fd fd, const std::string& name, std::optional<Fd> debug_file) {
  ASSIGN_OR_RETURN(ElfImage image, ElfImage::Read(fd.get(), name));
  ElfFile file;
  ASSIGN_OR_RETURN(file.build_id_, BuildIdOf(image));
  for (const ElfImage::Segment& segment : image.segments())
    if (segment.p_type == PT_LOAD)
      file.segments_.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz});
  TRY(file.ReadSymbols(image, name, false));
  TRY(file.ReadGoFunctions(image, name));
  TRY(file.ReadCode(image));
  if (debug_file.has_value()) {
    ASSIGN_OR_RETURN(ElfImage debug, ElfImage::Read(debug_file->get(), name + "'s debug file"));
    TRY(file.ReadSymbols(debug, name, true));
    file.debug_fd_ = std::move(*debug_file);
  }
  file.SortSymbols();
  file.fd_ = std::move(fd);
  return file;
}

Result<ElfFile> ElfFile::LoadWithDebugFile(Fd fd, const std::string& name, Fd debug_file) {
  if (debug_file.valid()) {
    ASSIGN_OR_RETURN(Fd own, Duplicate(fd));
    Result<ElfFile> both = Load(std::move(own), name, std::move(debug_file));
    if (both.has_value()) return both;
    LogInfo("{}", both.error().message);
  }
  return Load(std::move(fd), name);
}

std::string ElfFile::Pack() const {
  Packer packer;
  packer.Text(build_id_);
  packer.Array(std::span(segments_));
  packer.Array(std::span(entries_));
  packer.Array(std::span(sections_));
  packer.Array(std::span(function_starts_));
  return packer.Take();
}

Result<ElfFile> ElfFile::Unpack(std::string_view bytes, Fd fd, Fd debug_file) {
  Unpacker unpacker(bytes);
  ElfFile file;
  file.build_id_ = unpacker.Text();
  file.segments_ = unpacker.Array<Segment>();
  file.entries_ = unpacker.Array<Entry>();
  file.sections_ = unpacker.Array<CodeSection>();
  file.function_starts_ = unpacker.Array<uint32_t>();
  if (!unpacker.Complete() || !std::ranges::is_sorted(file.entries_, {}, &Entry::address) ||
      !std::ranges::is_sorted(file.function_starts_))
    return Fail(ErrorCode::kCorrupt, "symbols of another process don't parse");
  file.fd_ = std::move(fd);
  file.debug_fd_ = std::move(debug_file);
  return file;
}

Status ElfFile::ReadSymbols(ElfImage& image, const std::string& name, bool is_debug_file) {
  for (const ElfImage::Section& table : image.sections()) {
    if (table.type != SHT_SYMTAB && table.type != SHT_DYNSYM) continue;
    const ElfImage::Section* strings = image.SectionAt(table.link);
    if (strings == nullptr) continue;
    const auto add = [&](const Elf64_Sym& symbol) -> Result<bool> {
      if (!NamesCode(symbol) || symbol.st_name >= strings->size) return true;
      TRY(Add({.address = symbol.st_value,
               .name_position = strings->offset + symbol.st_name,
               .size = static_cast<uint32_t>(
                   std::min<uint64_t>(symbol.st_size, std::numeric_limits<uint32_t>::max())),
               .rank = RankOf(symbol.st_info),
               .in_debug_file = is_debug_file,
               .plt = false},
              name));
      return true;
    };
    TRY(image.ForEach<Elf64_Sym>(table, add));
  }
  return {};
}

Status ElfFile::ReadGoFunctions(ElfImage& image, const std::string& name) {
  ASSIGN_OR_RETURN(const std::optional<GoSection> go, FindGoSection(image));
  if (!go.has_value()) return {};
  for (size_t i = 0; i < go->table.size(); ++i) {
    const GoTable::Function function = go->table.At(i);
    if (function.end > function.start)
      TRY(Add({.address = function.start,
               .name_position = go->file_offset + function.name,
               .size = static_cast<uint32_t>(function.end - function.start),
               .rank = kGoRank,
               .in_debug_file = false,
               .plt = false},
              name));
  }
  return {};
}

Status ElfFile::ReadCode(ElfImage& image) {
  sections_ = FindCodeSections(image);
  ASSIGN_OR_RETURN(function_starts_, FindFunctionStarts(image));
  ASSIGN_OR_RETURN(const std::vector<PltStub> stubs, FindPltStubs(image));
  for (const PltStub& stub : stubs)
    entries_.push_back({.address = stub.address,
                        .name_position = stub.name_position,
                        .size = stub.size,
                        .rank = kPltRank,
                        .in_debug_file = false,
                        .plt = true});
  return {};
}

Status ElfFile::Add(const Entry& entry, const std::string& name) {
  if (entries_.size() >= kMaxSymbols)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} functions", name, kMaxSymbols));
  entries_.push_back(entry);
  return {};
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
  const ssize_t count = ::pread(entry.in_debug_file != 0 ? debug_fd_.get() : fd_.get(), buffer, sizeof buffer,
                                static_cast<off_t>(entry.name_position));
  if (count <= 0) return {};
  std::string name(buffer, ::strnlen(buffer, static_cast<size_t>(count)));
  return entry.plt != 0 ? name + "@plt" : name;
}

}  // namespace gpusonde::symbols
