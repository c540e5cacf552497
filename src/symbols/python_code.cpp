// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace gpusonde::symbols {
namespace {

constexpr uint64_t kObjectType = 8;     // PyObject: ob_type
constexpr uint64_t kVariableSize = 16;  // PyVarObject: ob_size
constexpr uint64_t kBytesText = 32;     // PyBytesObject: ob_sval
constexpr uint64_t kStringLength = 16;  // PyASCIIObject: length
constexpr uint64_t kStringState = 32;   // PyASCIIObject: state
// Immortal objects (3.12+) have about 2^32. A freed object has none, or, where the allocator keeps its list
// of free blocks in them, an address.
constexpr uint64_t kMaxReferences = uint64_t{1} << 33;
// Longer names exist in no source that people read; the line table of a generated module of 100,000 lines has
// 1 MB.
constexpr uint64_t kMaxTextLength = 4096;
constexpr uint64_t kMaxLineTableBytes = uint64_t{4} << 20;

// PyASCIIObject.state: interned:2, kind:3, compact:1, ascii:1, the same from 3.9 to 3.13.
struct StringState {
  uint32_t bits;
  uint32_t bytes_per_character() const { return bits >> 2 & 7; }
  bool compact() const { return (bits >> 5 & 1) != 0; }
  bool ascii() const { return (bits >> 6 & 1) != 0; }
};

std::unexpected<Error> Gone(uint64_t address) {
  return Fail(ErrorCode::kNotFound, fmt::format("the code object at {:#x} is gone", address));
}

Result<std::string> ReadString(const Memory& memory, const PythonLayout& layout, uint64_t address) {
  const auto length = memory.ReadAs<uint64_t>(address + kStringLength);
  const auto state = memory.ReadAs<StringState>(address + kStringState);
  if (!length.has_value() || !state.has_value()) return Gone(address);
  const uint32_t width = state->bytes_per_character();
  if (*length > kMaxTextLength || !state->compact() || (width != 1 && width != 2 && width != 4))
    return Fail(ErrorCode::kCorrupt, fmt::format("there is no string at {:#x}", address));
  std::vector<std::byte> bytes(*length * width);
  if (!memory.Read(address + (state->ascii() ? layout.ascii_text : layout.compact_text), bytes))
    return Gone(address);
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += width) {
    uint32_t character = 0;
    std::memcpy(&character, &bytes[i], width);
    AppendUtf8(character, text);
  }
  return text;
}

Result<std::vector<std::byte>> ReadBytes(const Memory& memory, uint64_t address) {
  const auto size = memory.ReadAs<uint64_t>(address + kVariableSize);
  if (!size.has_value()) return Gone(address);
  if (*size > kMaxLineTableBytes)
    return Fail(ErrorCode::kCorrupt, fmt::format("there is no line table at {:#x}", address));
  std::vector<std::byte> bytes(*size);
  if (!memory.Read(address + kBytesText, bytes)) return Gone(address);
  return bytes;
}

// 3.9: pairs of (bytes of code, lines), the second signed.
int32_t LnotabLine(std::span<const std::byte> table, int32_t first_line, uint32_t instruction) {
  int64_t line = first_line;
  uint64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += std::to_integer<uint8_t>(table[i]);
    if (end > instruction) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return static_cast<int32_t>(line);
}

// 3.10: pairs of (bytes of code, lines), where -128 lines means none at all.
int32_t RangesLine(std::span<const std::byte> table, int32_t first_line, uint32_t instruction) {
  constexpr int8_t kNoLine = -128;
  int64_t line = first_line;
  uint64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    const auto lines = static_cast<int8_t>(table[i + 1]);
    end += std::to_integer<uint8_t>(table[i]);
    if (lines != kNoLine) line += lines;
    if (instruction < end) return lines == kNoLine ? 0 : static_cast<int32_t>(line);
  }
  return 0;
}

// 3.11+: entries that begin with a byte that has its top bit set: a form, and a length in units of two bytes.
class LocationReader {
 public:
  explicit LocationReader(std::span<const std::byte> table) : table_(table) {}

  struct Entry {
    uint64_t bytes = 0;  // of code
    std::optional<int64_t> line_delta;
  };
  std::optional<Entry> Next() {
    while (at_ < table_.size() && (Byte(at_) & 0x80) == 0) ++at_;
    if (at_ >= table_.size()) return std::nullopt;
    const uint8_t head = Byte(at_++);
    Entry entry{.bytes = 2 * uint64_t{(head & 7u) + 1}, .line_delta = 0};
    const uint32_t form = head >> 3 & 15;
    if (form == 15)
      entry.line_delta.reset();
    else if (form == 14 || form == 13)
      entry.line_delta = Signed();
    else if (form >= 10)
      entry.line_delta = form - 10;
    return entry;
  }

 private:
  uint8_t Byte(size_t i) const { return std::to_integer<uint8_t>(table_[i]); }

  // Six bits a byte, the least significant first; the next-to-top bit says that there is more.
  int64_t Signed() {
    uint64_t value = 0;
    for (uint32_t shift = 0; at_ < table_.size() && shift < 60; shift += 6) {
      const uint8_t byte = Byte(at_++);
      value |= uint64_t{byte & 0x3Fu} << shift;
      if ((byte & 0x40) == 0) break;
    }
    const auto magnitude = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

  std::span<const std::byte> table_;
  size_t at_ = 0;
};

int32_t LocationsLine(std::span<const std::byte> table, int32_t first_line, uint32_t instruction) {
  LocationReader reader(table);
  auto line = static_cast<uint64_t>(first_line);  // unsigned: a hostile table may overflow it
  uint64_t end = 0;
  while (const auto entry = reader.Next()) {
    end += entry->bytes;
    line += static_cast<uint64_t>(entry->line_delta.value_or(0));
    if (instruction < end) return entry->line_delta.has_value() ? static_cast<int32_t>(line) : 0;
  }
  return 0;
}

}  // namespace

int32_t PythonCode::LineOf(uint32_t instruction) const {
  switch (line_format) {
    case PythonLineTable::kLnotab:
      return std::max(LnotabLine(line_table, first_line, instruction), 0);
    case PythonLineTable::kRanges:
      return std::max(RangesLine(line_table, first_line, instruction), 0);
    case PythonLineTable::kLocations:
      return std::max(LocationsLine(line_table, first_line, instruction), 0);
  }
  return 0;
}

Result<PythonCode> ReadPythonCode(const Memory& memory, const PythonLayout& layout, uint64_t code_type,
                                  uint64_t address, uint32_t check) {
  const auto name = memory.ReadAs<uint64_t>(address + layout.walk.code_name);
  const auto first_line = memory.ReadAs<int32_t>(address + layout.walk.code_first_line);
  const auto file = memory.ReadAs<uint64_t>(address + layout.walk.code_file);
  const auto lines = memory.ReadAs<uint64_t>(address + layout.code_lines);
  const auto qualified_name =
      layout.code_qualified_name == 0 ? name : memory.ReadAs<uint64_t>(address + layout.code_qualified_name);
  if (!first_line.has_value() || !name.has_value() || !file.has_value() || !lines.has_value() ||
      !qualified_name.has_value())
    return Gone(address);
  if (gpusonde_python_check(*name, *file, static_cast<uint32_t>(*first_line)) != check) return Gone(address);

  PythonCode code{.first_line = *first_line, .line_format = layout.lines};
  ASSIGN_OR_RETURN(code.name, ReadString(memory, layout, *qualified_name));
  ASSIGN_OR_RETURN(code.file, ReadString(memory, layout, *file));
  ASSIGN_OR_RETURN(code.line_table, ReadBytes(memory, *lines));

  // Asked last: as long as the object is alive, so is all that it refers to.
  const auto references = memory.ReadAs<uint64_t>(address);
  const auto type = memory.ReadAs<uint64_t>(address + kObjectType);
  const bool alive = references.has_value() && *references > 0 && *references <= kMaxReferences;
  if (!alive || !type.has_value() || (code_type != 0 && *type != code_type) ||
      memory.ReadAs<uint64_t>(address + layout.walk.code_name) != name)
    return Gone(address);
  return code;
}

}  // namespace gpusonde::symbols
