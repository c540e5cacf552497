// SPDX-License-Identifier: Apache-2.0
#include "symbols/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>

#include "symbols/debug_file.h"

namespace gpusonde::symbols {
namespace {

// Namespaces and classes around a function; real code has under ten.
constexpr int kMaxScopes = 64;
// Blocks and inlined functions inside a function; the deepest seen in libLLVM is 60.
constexpr int kMaxInlined = 512;

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

struct EndDwarf {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};
using DwarfHandle = std::unique_ptr<Dwarf, EndDwarf>;

// An interval of addresses, [low, high), of the `index`th of something.
struct Range {
  uint64_t low = 0, high = 0;
  size_t index = 0;
};

// Calls visit(low, high) for every range of a DIE.
template <class Visit>
void ForEachRange(Dwarf_Die* die, Visit visit) {
  Dwarf_Addr base = 0, low = 0, high = 0;
  for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
    if (low < high) visit(low, high);
}

// The last range that begins at or before the address, if it covers it. Ranges don't overlap in sane files;
// in others some answer is as good as another.
const Range* FindRange(std::span<const Range> sorted, uint64_t address) {
  const auto after = std::ranges::upper_bound(sorted, address, {}, &Range::low);
  if (after == sorted.begin()) return nullptr;
  const Range& found = *std::prev(after);
  return address < found.high ? &found : nullptr;
}

std::string TextOf(const char* text) { return text == nullptr ? std::string() : std::string(text); }

int32_t LineOf(Dwarf_Word line) {
  return line > static_cast<Dwarf_Word>(std::numeric_limits<int32_t>::max()) ? 0 : static_cast<int32_t>(line);
}

std::string NameOf(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (dwarf_attr_integrate(die, name, &attribute) != nullptr)
      if (const char* text = dwarf_formstring(&attribute); text != nullptr) return text;
  return TextOf(dwarf_diename(die));
}

// A source file's full path: the debug information's may be relative to the folder in which the compiler ran.
std::string FileOf(const char* file, const std::string& compiled_in) {
  if (file == nullptr || *file == '\0') return {};
  return (std::filesystem::path(compiled_in) / file).lexically_normal().string();
}

SourceFrame FrameOf(Dwarf_Die* die, const std::string& compiled_in) {
  SourceFrame frame{.function = NameOf(die), .file = FileOf(dwarf_decl_file(die), compiled_in)};
  int line = 0;
  if (dwarf_decl_line(die, &line) == 0) frame.first_line = LineOf(static_cast<Dwarf_Word>(line));
  return frame;
}

// The line in the function around it from which an inlined function is called.
int32_t CallLineOf(Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  if (dwarf_attr(inlined, DW_AT_call_line, &attribute) == nullptr || dwarf_formudata(&attribute, &line) != 0)
    return 0;
  return LineOf(line);
}

// A compilation unit; its functions are listed when the first of its addresses is asked for.
class Unit {
 public:
  Unit(const Dwarf_Die& lines, const Dwarf_Die& dies) : lines_(lines), dies_(dies) {
    Dwarf_Attribute folder;
    if (dwarf_attr(&lines_, DW_AT_comp_dir, &folder) != nullptr)
      compiled_in_ = TextOf(dwarf_formstring(&folder));
  }

  std::vector<SourceFrame> Find(uint64_t address) {
    if (!listed_) {
      List(dies_, 0);
      std::ranges::sort(functions_, {}, &Range::low);
      listed_ = true;
    }
    std::vector<SourceFrame> frames;
    if (const Range* function = FindRange(functions_, address); function != nullptr)
      frames = FramesOf(function_dies_[function->index], address);
    else
      frames.emplace_back();
    AddLine(address, frames.front());
    if (frames.size() == 1 && frames.front() == SourceFrame()) return {};
    return frames;
  }

 private:
  void List(Dwarf_Die scope, int depth) {
    Dwarf_Die die;
    if (depth > kMaxScopes || dwarf_child(&scope, &die) != 0) return;
    do {
      switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
          ForEachRange(&die, [&](uint64_t low, uint64_t high) {
            functions_.push_back({low, high, function_dies_.size()});
          });
          if (!functions_.empty() && functions_.back().index == function_dies_.size())
            function_dies_.push_back(die);
          break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
          List(die, depth + 1);
          break;
        default:
          break;
      }
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  // From the function down through what was inlined at the address; innermost first.
  std::vector<SourceFrame> FramesOf(Dwarf_Die function, uint64_t address) const {
    std::vector<SourceFrame> frames = {FrameOf(&function, compiled_in_)};
    Dwarf_Die block = function, child;
    for (int depth = 0; depth < kMaxInlined && dwarf_child(&block, &child) == 0; ++depth) {
      bool inside = false;
      do {
        const int tag = dwarf_tag(&child);
        inside = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
                 dwarf_haspc(&child, address) > 0;
        if (!inside) continue;
        if (tag == DW_TAG_inlined_subroutine) {
          frames.back().line = CallLineOf(&child);
          frames.push_back(FrameOf(&child, compiled_in_));
        }
        block = child;
        break;
      } while (dwarf_siblingof(&child, &child) == 0);
      if (!inside) break;
    }
    std::ranges::reverse(frames);
    return frames;
  }

  void AddLine(uint64_t address, SourceFrame& frame) {
    Dwarf_Line* line = dwarf_getsrc_die(&lines_, address);
    int number = 0;
    if (line == nullptr || dwarf_lineno(line, &number) != 0) return;
    frame.line = LineOf(static_cast<Dwarf_Word>(number));
    if (frame.file.empty()) frame.file = FileOf(dwarf_linesrc(line, nullptr, nullptr), compiled_in_);
  }

  Dwarf_Die lines_;  // the unit's own DIE
  Dwarf_Die dies_;   // where its functions are: the same, or that of a split unit
  std::string compiled_in_;
  bool listed_ = false;
  std::vector<Range> functions_;
  std::vector<Dwarf_Die> function_dies_;
};

struct Segment {
  uint64_t file_offset = 0, size = 0, address = 0;
};

std::vector<Segment> SegmentsOf(Elf* elf) {
  std::vector<Segment> segments;
  size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0) return segments;
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
      segments.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
  }
  return segments;
}

// Of all that read a file, the last to go is the descriptor.
struct Opened {
  Fd fd;
  ElfHandle elf;
  DwarfHandle dwarf;
};

Result<Opened> OpenDwarf(Fd fd, const std::string& name) {
  Opened opened{.fd = std::move(fd), .elf = nullptr, .dwarf = nullptr};
  static const bool initialised = elf_version(EV_CURRENT) != EV_NONE;
  opened.elf.reset(initialised ? elf_begin(opened.fd.get(), ELF_C_READ_MMAP_PRIVATE, nullptr) : nullptr);
  if (opened.elf == nullptr || elf_kind(opened.elf.get()) != ELF_K_ELF ||
      gelf_getclass(opened.elf.get()) != ELFCLASS64)
    return Fail(ErrorCode::kCorrupt, name + " is not a 64-bit ELF file");
  opened.dwarf.reset(dwarf_begin_elf(opened.elf.get(), DWARF_C_READ, nullptr));
  return opened;
}

bool HasUnits(Dwarf* dwarf) {
  Dwarf_CU* unit = nullptr;
  return dwarf != nullptr && dwarf_get_units(dwarf, nullptr, &unit, nullptr, nullptr, nullptr, nullptr) == 0;
}

// The file that the debug file names to hold what several share: by build id, then by its path.
std::optional<Fd> OpenSupplementary(Dwarf* dwarf, const DebugPlaces& places) {
  const char* name = nullptr;
  const void* build_id = nullptr;
  const ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
  if (bytes <= 0) return std::nullopt;
  std::string hex;
  for (const uint8_t byte : std::span(static_cast<const uint8_t*>(build_id), static_cast<size_t>(bytes)))
    hex += fmt::format("{:02x}", byte);
  std::optional<Fd> found = OpenByBuildId(hex, places);
  if (found.has_value() || name == nullptr || *name != '/') return found;
  for (const std::string& root : places.roots)
    if (std::optional<Fd> fd = places.Open(root + name); fd.has_value()) return fd;
  return std::nullopt;
}

}  // namespace

struct DwarfFile::State {
  Opened file;
  std::optional<Opened> debug, supplementary;
  std::vector<Segment> segments;
  std::vector<Unit> units;
  std::vector<Range> ranges;  // of units

  Dwarf* dwarf() const { return debug.has_value() ? debug->dwarf.get() : file.dwarf.get(); }
  void ListUnits();
};

DwarfFile::DwarfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfFile::DwarfFile(DwarfFile&&) noexcept = default;
DwarfFile& DwarfFile::operator=(DwarfFile&&) noexcept = default;
DwarfFile::~DwarfFile() = default;

Result<DwarfFile> DwarfFile::Open(Fd fd, const std::string& path, const DebugPlaces& places) {
  std::optional<Fd> debug = OpenDebugFile(fd.get(), path, places);
  return OpenWith(std::move(fd), debug.has_value() ? std::move(*debug) : Fd(), path, places);
}

Result<DwarfFile> DwarfFile::OpenWith(Fd fd, Fd debug_file, const std::string& path,
                                      const DebugPlaces& places) {
  auto state = std::make_unique<State>();
  ASSIGN_OR_RETURN(state->file, OpenDwarf(std::move(fd), path));
  state->segments = SegmentsOf(state->file.elf.get());
  if (!HasUnits(state->file.dwarf.get()) && debug_file.valid()) {
    ASSIGN_OR_RETURN(state->debug, OpenDwarf(std::move(debug_file), path + "'s debug file"));
  }
  if (!HasUnits(state->dwarf())) return Fail(ErrorCode::kNotFound, "no debug information for " + path);
  if (std::optional<Fd> found = OpenSupplementary(state->dwarf(), places); found.has_value()) {
    Result<Opened> opened = OpenDwarf(std::move(*found), path + "'s supplementary file");
    if (opened.has_value() && opened->dwarf != nullptr) {
      state->supplementary = std::move(*opened);
      dwarf_setalt(state->dwarf(), state->supplementary->dwarf.get());
    }
  }
  state->ListUnits();
  return DwarfFile(std::move(state));
}

// By the units' own ranges: .debug_aranges would be quicker, but not every compiler writes it.
void DwarfFile::State::ListUnits() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die{}, split{};
  uint8_t type = 0;
  while (dwarf_get_units(dwarf(), unit, &unit, nullptr, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial) continue;
    if (dwarf_tag(&die) == DW_TAG_invalid) continue;
    ForEachRange(&die, [&](uint64_t low, uint64_t high) { ranges.push_back({low, high, units.size()}); });
    units.emplace_back(die, type == DW_UT_skeleton && split.addr != nullptr ? split : die);
  }
  std::ranges::sort(ranges, {}, &Range::low);
}

std::vector<SourceFrame> DwarfFile::Find(uint64_t file_offset) {
  for (const Segment& segment : state_->segments) {
    if (file_offset < segment.file_offset || file_offset - segment.file_offset >= segment.size) continue;
    const uint64_t address = file_offset - segment.file_offset + segment.address;
    const Range* range = FindRange(state_->ranges, address);
    return range == nullptr ? std::vector<SourceFrame>() : state_->units[range->index].Find(address);
  }
  return {};
}

}  // namespace gpusonde::symbols
