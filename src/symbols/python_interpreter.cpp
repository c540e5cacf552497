// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_interpreter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/packing.h"
#include "symbols/elf_image.h"

namespace gpusonde::symbols {
namespace {

constexpr std::string_view kEvaluator = "_PyEval_EvalFrameDefault";
constexpr std::string_view kRuntime = "_PyRuntime";
constexpr std::string_view kOldRuntime = "_PyThreadState_Current";  // until CPython 3.6
constexpr size_t kMaxSymbolName = 64;                               // longer than those above and below
constexpr size_t kMaxEvaluators = 16;                               // CPython's own have two parts

// The symbols that say whether there is an interpreter, where it is, and of which version.
struct Symbols {
  std::optional<Elf64_Sym> runtime, old_runtime, version, new_ref, frame_get_back, code_type;
  std::vector<PythonInterpreter::Range> evaluators;

  void Note(std::string_view name, const Elf64_Sym& symbol) {
    if (name == kRuntime) runtime = symbol;
    if (name == kOldRuntime) old_runtime = symbol;
    if (name == "Py_Version") version = symbol;
    if (name == "Py_NewRef") new_ref = symbol;
    if (name == "PyFrame_GetBack") frame_get_back = symbol;
    if (name == "PyCode_Type") code_type = symbol;
    // Compilers add to the name of a part: _PyEval_EvalFrameDefault.cold.
    if (evaluators.size() < kMaxEvaluators && name.starts_with(kEvaluator) &&
        (name.size() == kEvaluator.size() || name[kEvaluator.size()] == '.'))
      evaluators.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
  }
};

// Whether a string table may name a runtime. It is read piece by piece, each with the end of the one
// before: most files have no interpreter, and large ones have tens of MB of names.
Result<bool> MayNameRuntime(ElfImage& image, const ElfImage::Section& strings) {
  bool found = false;
  std::string text;
  TRY(image.ForEachPiece(strings.offset, strings.size, [&](std::span<const std::byte> piece) -> Result<bool> {
    text.erase(0, text.size() - std::min(text.size(), kOldRuntime.size() - 1));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are characters here
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    found = std::ranges::any_of(std::array{kRuntime, kOldRuntime}, [&](std::string_view name) {
      return ::memmem(text.data(), text.size(), name.data(), name.size()) != nullptr;
    });
    return !found;
  }));
  return found;
}

Status ReadSymbols(ElfImage& image, uint32_t section_type, Symbols& symbols) {
  for (const ElfImage::Section& table : image.sections()) {
    const ElfImage::Section* strings = image.SectionAt(table.link);
    if (table.type != section_type || strings == nullptr) continue;
    ASSIGN_OR_RETURN(const bool may_name, MayNameRuntime(image, *strings));
    if (!may_name) continue;
    ASSIGN_OR_RETURN(const auto bytes, image.Bytes(strings->offset, strings->size));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are characters here
    const std::string_view names(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    TRY(image.ForEach<Elf64_Sym>(table, [&](const Elf64_Sym& symbol) -> Result<bool> {
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name >= names.size()) return true;
      const std::string_view rest = names.substr(symbol.st_name, kMaxSymbolName);
      if (rest.starts_with("Py") || rest.starts_with("_Py"))
        symbols.Note(rest.substr(0, rest.find('\0')), symbol);
      return true;
    }));
  }
  return {};
}

using Segments = std::span<const ElfImage::Segment>;

const ElfImage::Segment* SegmentOf(Segments segments, uint64_t address) {
  const auto found = std::ranges::find_if(segments, [address](const ElfImage::Segment& segment) {
    return segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
           address - segment.p_vaddr < segment.p_filesz;
  });
  return found == segments.end() ? nullptr : &*found;
}

// The file's bytes at an address; zeros where the file has none.
template <size_t kBytes>
std::array<char, kBytes> InitialBytes(int fd, Segments segments, uint64_t address) {
  std::array<char, kBytes> bytes{};
  const ElfImage::Segment* segment = SegmentOf(segments, address);
  if (segment == nullptr) return bytes;
  const uint64_t offset = segment->p_offset + (address - segment->p_vaddr);
  if (::pread(fd, bytes.data(), kBytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(kBytes))
    bytes = {};
  return bytes;
}

// 0x030b for 3.11. From 3.11 on a constant says it; before, the newest function there is.
uint32_t VersionOf(int fd, Segments segments, const Symbols& symbols) {
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
bool IsFreeThreaded(int fd, Segments segments, uint64_t runtime) {
  const auto bytes = InitialBytes<24>(fd, segments, runtime);
  return std::string_view(bytes.data(), 8) == "xdebugpy" &&
         std::ranges::any_of(std::string_view(bytes.data() + 16, 8), [](char c) { return c != 0; });
}

std::unexpected<Error> Unsupported(const std::string& file, std::string_view what) {
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: no Python frames of {}; those of CPython 3.9 to 3.13 are read", file, what));
}

}  // namespace

bool PythonInterpreter::IsEvaluator(uint64_t address) const {
  return std::ranges::any_of(
      evaluators, [address](const Range& range) { return address >= range.start && address < range.end; });
}

Result<std::optional<PythonInterpreter>> FindPythonInterpreter(int fd, const std::string& name) {
  ASSIGN_OR_RETURN(ElfImage image, ElfImage::Read(fd, name));
  Symbols symbols;
  TRY(ReadSymbols(image, SHT_DYNSYM, symbols));
  // The full table knows the parts that the compiler split off; and a program that exports nothing has only
  // that.
  TRY(ReadSymbols(image, SHT_SYMTAB, symbols));
  if (!symbols.runtime.has_value() && symbols.old_runtime.has_value())
    return Unsupported(name, "a CPython before 3.7");
  if (!symbols.runtime.has_value() || symbols.evaluators.empty()) return std::nullopt;

  const Segments segments = image.segments();
  const ElfImage::Segment* code = SegmentOf(segments, symbols.evaluators.front().start);
  if (code == nullptr)
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {} is in no segment", name, kEvaluator));
  const uint32_t version = VersionOf(fd, segments, symbols);
  const bool free_threaded = version >= 0x030d && IsFreeThreaded(fd, segments, symbols.runtime->st_value);
  const PythonLayout* layout = FindPythonLayout(version);
  if (layout == nullptr || free_threaded)
    return Unsupported(name, version == 0 ? "a CPython before 3.9"
                                          : fmt::format("CPython {}.{}{}", version >> 8, version & 0xff,
                                                        free_threaded ? " without a GIL" : ""));
  return PythonInterpreter{.layout = layout,
                           .runtime = symbols.runtime->st_value,
                           .code_type = symbols.code_type.has_value() ? symbols.code_type->st_value : 0,
                           .evaluators = std::move(symbols.evaluators),
                           .address_minus_offset = code->p_vaddr - code->p_offset};
}

std::string PackPython(const std::optional<PythonInterpreter>& found) {
  Packer packer;
  if (!found.has_value()) return packer.Take();
  packer.Value(found->layout->version);
  packer.Value(found->runtime);
  packer.Value(found->code_type);
  packer.Array(std::span(found->evaluators));
  packer.Value(found->address_minus_offset);
  return packer.Take();
}

Result<std::optional<PythonInterpreter>> UnpackPython(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  Unpacker unpacker(bytes);
  PythonInterpreter found{.layout = FindPythonLayout(unpacker.Value<uint32_t>())};
  found.runtime = unpacker.Value<uint64_t>();
  found.code_type = unpacker.Value<uint64_t>();
  found.evaluators = unpacker.Array<PythonInterpreter::Range>();
  found.address_minus_offset = unpacker.Value<uint64_t>();
  if (!unpacker.Complete() || found.layout == nullptr || found.evaluators.size() > kMaxEvaluators)
    return Fail(ErrorCode::kCorrupt, "an interpreter of another process doesn't parse");
  return found;
}

}  // namespace gpusonde::symbols
