// SPDX-License-Identifier: Apache-2.0
#include "symbols/go_table.h"

#include <algorithm>
#include <cstring>

namespace gpusonde::symbols {
namespace {

constexpr uint64_t kMagic116 = 0xFFFFFFFA, kMagic118 = 0xFFFFFFF0, kMagic120 = 0xFFFFFFF1;
constexpr size_t kWord = 8;
// The go command itself has 13,000 functions, kubelet 100,000.
constexpr uint64_t kMaxGoFunctions = 1'000'000;
constexpr uint64_t kMaxGoFunctionBytes = uint64_t{1} << 28;

}  // namespace

uint64_t GoTable::Number(uint64_t place, size_t bytes) const {
  if (place > section_.size() || bytes > section_.size() - place) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(section_[place + i]) << (8 * i);
  return value;
}

std::optional<GoTable> GoTable::Parse(std::span<const std::byte> section, uint64_t text_start) {
  GoTable table;
  table.section_ = section;
  const uint64_t magic = table.Number(0, 4);
  if (magic != kMagic116 && magic != kMagic118 && magic != kMagic120) return std::nullopt;
  if (table.Number(6, 1) != 1 || table.Number(7, 1) != kWord) return std::nullopt;  // x86-64's
  table.offsets_ = magic != kMagic116;
  const auto header = [&table](uint64_t word) { return table.Number(kWord + word * kWord, kWord); };
  const uint64_t count = header(0);
  table.text_start_ = table.offsets_ && header(2) != 0 ? header(2) : text_start;
  const uint64_t parts = table.offsets_ ? 3 : 2;  // names, units, files, depths and lines, functions
  table.names_ = header(parts);
  table.depths_ = header(parts + 3);
  table.functions_ = header(parts + 4);
  const uint64_t entry_bytes = table.offsets_ ? 8 : 16;
  if (count == 0 || count > kMaxGoFunctions || table.names_ >= section.size() ||
      table.depths_ >= section.size() || table.functions_ >= section.size() ||
      section.size() - table.functions_ < count * entry_bytes + entry_bytes / 2)
    return std::nullopt;
  table.count_ = count;
  return table;
}

GoTable::Function GoTable::At(size_t index) const {
  const size_t half = offsets_ ? 4 : 8;
  const uint64_t entry = functions_ + index * 2 * half;
  const uint64_t begin = offsets_ ? text_start_ : 0;
  // The next one's begin is this one's end; after the last stands the end of all.
  Function function{.start = begin + Number(entry, half), .end = begin + Number(entry + 2 * half, half)};
  if (function.end < function.start || function.end - function.start > kMaxGoFunctionBytes)
    function.end = function.start;
  const uint64_t info = functions_ + Number(entry + half, half) + (offsets_ ? 4 : 8);  // behind its entry
  function.name = names_ + Number(info, 4);
  if (const uint64_t depths = Number(info + 12, 4); depths != 0) function.depths = depths_ + depths;
  return function;
}

std::string_view GoTable::NameOf(const Function& function, size_t limit) const {
  if (function.name >= section_.size()) return {};
  const auto rest = section_.subspan(function.name);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are characters here
  const auto* text = reinterpret_cast<const char*>(rest.data());
  const size_t size = ::strnlen(text, std::min(limit, rest.size()));
  return size == rest.size() ? std::string_view() : std::string_view(text, size);
}

// Pairs of numbers of variable length: the change of the value, as zigzag, and of the address. No change ends
// the list, but for its first pair.
bool GoTable::ForEachDepth(const Function& function,
                           const std::function<bool(uint64_t address, int32_t bytes)>& row) const {
  if (function.depths == 0) return true;
  uint64_t place = function.depths;
  const auto next = [this, &place](uint32_t& number) {
    number = 0;
    for (uint32_t shift = 0; shift < 32 && place < section_.size(); shift += 7) {
      const auto byte = std::to_integer<uint32_t>(section_[place++]);
      number |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  };
  uint32_t depth = ~uint32_t{0};
  for (uint64_t address = function.start; address < function.end;) {
    uint32_t change = 0, bytes = 0;
    if (!next(change)) return false;
    if (change == 0 && address != function.start) return true;  // padding up to the next function
    if (!next(bytes) || bytes == 0) return false;
    depth += (change & 1) != 0 ? ~(change >> 1) : change >> 1;
    if (!row(address, static_cast<int32_t>(depth))) return false;
    if (bytes >= function.end - address) return true;  // an address beyond 64 bits would begin anew at 0
    address += bytes;
  }
  return true;
}

}  // namespace gpusonde::symbols
