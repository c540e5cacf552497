// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_interpreter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "symbols/elf_handle.h"

namespace gpusonde::symbols {
namespace {

constexpr std::string_view kEvaluator = "_PyEval_EvalFrameDefault";
constexpr std::string_view kRuntime = "_PyRuntime";

// The symbols that say whether there is an interpreter, where it is, and of which version.
struct Symbols {
  std::optional<GElf_Sym> runtime, version, new_ref, frame_get_back, code_type;
  std::vector<PythonInterpreter::Range> evaluators;

  void Note(std::string_view name, const GElf_Sym& symbol) {
    if (name == kRuntime) runtime = symbol;
    if (name == "Py_Version") version = symbol;
    if (name == "Py_NewRef") new_ref = symbol;
    if (name == "PyFrame_GetBack") frame_get_back = symbol;
    if (name == "PyCode_Type") code_type = symbol;
    // Compilers add to the name of a part: _PyEval_EvalFrameDefault.cold.
    if (name.starts_with(kEvaluator) && (name.size() == kEvaluator.size() || name[kEvaluator.size()] == '.'))
      evaluators.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
  }
};

// Whether a symbol table may name the runtime, by a look at its names alone: node's 80,000 take 60 ms one by
// one. The names are read piece by piece, each with the end of the one before.
bool MayNameRuntime(int fd, Elf* elf, const GElf_Shdr& table) {
  GElf_Shdr names;
  Elf_Scn* section = elf_getscn(elf, table.sh_link);
  if (section == nullptr || gelf_getshdr(section, &names) == nullptr) return false;
  std::array<char, 128 << 10> piece;
  size_t kept = 0;
  for (uint64_t done = 0; done < names.sh_size;) {
    const auto wanted = std::min<uint64_t>(piece.size() - kept, names.sh_size - done);
    const ssize_t count =
        ::pread(fd, piece.data() + kept, wanted, static_cast<off_t>(names.sh_offset + done));
    if (count <= 0) return false;
    const std::string_view text(piece.data(), kept + static_cast<size_t>(count));
    if (::memmem(text.data(), text.size(), kRuntime.data(), kRuntime.size()) != nullptr) return true;
    kept = std::min(text.size(), kRuntime.size() - 1);
    std::memmove(piece.data(), text.data() + text.size() - kept, kept);
    done += static_cast<uint64_t>(count);
  }
  return false;
}

void ReadSymbols(int fd, Elf* elf, GElf_Word section_type, Symbols& symbols) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != section_type || header.sh_entsize == 0)
      continue;
    if (!MayNameRuntime(fd, elf, header)) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    const size_t count = data->d_size / header.sh_entsize;
    for (size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name != nullptr && (std::strncmp(name, "Py", 2) == 0 || std::strncmp(name, "_Py", 3) == 0))
        symbols.Note(name, symbol);
    }
  }
}

std::vector<GElf_Phdr> Segments(Elf* elf) {
  std::vector<GElf_Phdr> segments;
  size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0) return segments;
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
      segments.push_back(header);
  }
  return segments;
}

const GElf_Phdr* SegmentOf(const std::vector<GElf_Phdr>& segments, uint64_t address) {
  const auto found = std::ranges::find_if(segments, [address](const GElf_Phdr& segment) {
    return address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
  });
  return found == segments.end() ? nullptr : &*found;
}

// The file's bytes at an address; zeros where the file has none.
template <size_t kBytes>
std::array<char, kBytes> InitialBytes(int fd, const std::vector<GElf_Phdr>& segments, uint64_t address) {
  std::array<char, kBytes> bytes{};
  const GElf_Phdr* segment = SegmentOf(segments, address);
  if (segment == nullptr) return bytes;
  const uint64_t offset = segment->p_offset + (address - segment->p_vaddr);
  if (::pread(fd, bytes.data(), kBytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(kBytes))
    bytes = {};
  return bytes;
}

// 0x030b for 3.11. From 3.11 on a constant says it; before, the newest function there is.
uint32_t VersionOf(int fd, const std::vector<GElf_Phdr>& segments, const Symbols& symbols) {
  if (symbols.version.has_value()) {
    const auto bytes = InitialBytes<4>(fd, segments, symbols.version->st_value);
    uint32_t hexversion = 0;
    std::memcpy(&hexversion, bytes.data(), sizeof hexversion);
    return hexversion >> 16;
  }
  if (symbols.new_ref.has_value()) return 0x030a;
  return symbols.frame_get_back.has_value() ? 0x0309 : 0;
}

// _PyRuntime of 3.13 begins with _Py_DebugOffsets: a cookie, the version, and whether there is no GIL.
bool IsFreeThreaded(int fd, const std::vector<GElf_Phdr>& segments, uint64_t runtime) {
  const auto bytes = InitialBytes<24>(fd, segments, runtime);
  return std::string_view(bytes.data(), 8) == "xdebugpy" &&
         std::ranges::any_of(std::string_view(bytes.data() + 16, 8), [](char c) { return c != 0; });
}

}  // namespace

bool PythonInterpreter::IsEvaluator(uint64_t address) const {
  return std::ranges::any_of(
      evaluators, [address](const Range& range) { return address >= range.start && address < range.end; });
}

Result<std::optional<PythonInterpreter>> FindPythonInterpreter(int fd, const std::string& name) {
  ASSIGN_OR_RETURN(const ElfHandle elf, BeginElf(fd, name));
  Symbols symbols;
  ReadSymbols(fd, elf.get(), SHT_DYNSYM, symbols);
  // The full table knows the parts that the compiler split off; and a program that exports nothing has only
  // that.
  ReadSymbols(fd, elf.get(), SHT_SYMTAB, symbols);
  if (!symbols.runtime.has_value() || symbols.evaluators.empty()) return std::nullopt;

  const std::vector<GElf_Phdr> segments = Segments(elf.get());
  const GElf_Phdr* code = SegmentOf(segments, symbols.evaluators.front().start);
  if (code == nullptr)
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {} is in no segment", name, kEvaluator));
  const uint32_t version = VersionOf(fd, segments, symbols);
  const bool free_threaded = version >= 0x030d && IsFreeThreaded(fd, segments, symbols.runtime->st_value);
  const PythonLayout* layout = FindPythonLayout(version);
  if (layout == nullptr || free_threaded)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: no Python frames of {}{}; those of CPython 3.9 to 3.13 are read", name,
                            version == 0 ? "a CPython before 3.9"
                                         : fmt::format("CPython {}.{}", version >> 8, version & 0xff),
                            free_threaded ? " without a GIL" : ""));
  return PythonInterpreter{.layout = layout,
                           .runtime = symbols.runtime->st_value,
                           .code_type = symbols.code_type.has_value() ? symbols.code_type->st_value : 0,
                           .evaluators = std::move(symbols.evaluators),
                           .address_minus_offset = code->p_vaddr - code->p_offset};
}

}  // namespace gpusonde::symbols
