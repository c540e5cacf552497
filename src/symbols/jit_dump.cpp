// SPDX-License-Identifier: Apache-2.0
#include "symbols/jit_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace gpusonde::symbols {
namespace {

// In the byte order of the machine that wrote it, which is this one.
constexpr uint32_t kMagic = 0x4A69'5444;
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 40;
constexpr uint64_t kMaxHeaderBytes = 4096;
constexpr size_t kRecordHeaderBytes = 16;

enum RecordKind : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2 };

// Of a record of code this much is read: what is before the name, and the name. The code itself follows.
constexpr uint64_t kMaxLoadBytes = 48 + 4096;
constexpr uint64_t kMaxDebugInfoBytes = uint64_t{1} << 20;

// What the allocator and the containers add to a code, and to a file's name.
constexpr size_t kCodeOverhead = 96;
constexpr size_t kFileOverhead = 96;

// V8 gives addresses in the ELF file that `perf inject` will make, which lie behind that file's header.
constexpr uint64_t kElfHeaderBytes = 0x40;

template <class Value>
bool Take(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

bool TakeText(std::string_view& bytes, std::string_view& text) {
  const size_t end = bytes.find('\0');
  if (end == std::string_view::npos) return false;
  text = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return true;
}

// Exactly [begin, begin + size) of the file; false when it isn't there.
bool ReadWhole(const Fd& file, uint64_t begin, uint64_t size, std::string& bytes) {
  bytes.resize(size);
  const auto into = std::as_writable_bytes(std::span(bytes));
  return ReadAt(file.get(), begin, into, "a jitdump file").value_or(0) == size;
}

bool IsPath(std::string_view text) {
  return !text.empty() && IsUtf8(text) &&
         std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20; });
}

}  // namespace

bool JitDump::ReadHeader(const Fd& file) {
  std::string bytes;
  if (!ReadWhole(file, 0, kHeaderBytes, bytes)) return false;
  std::string_view rest = bytes;
  uint32_t magic = 0;
  uint32_t version = 0;
  uint32_t total_bytes = 0;
  Take(rest, magic);
  Take(rest, version);
  Take(rest, total_bytes);
  broken_ =
      magic != kMagic || version != kVersion || total_bytes < kHeaderBytes || total_bytes > kMaxHeaderBytes;
  position_ = total_bytes;
  return !broken_;
}

bool JitDump::Follow(const Fd& file, size_t max_bytes) {
  struct stat status{};
  if (broken_ || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (position_ == 0 && !ReadHeader(file)) return false;
  const auto end = static_cast<uint64_t>(status.st_size);
  bool any = false;
  full_ = false;
  uint64_t debug_info_left = kMaxDebugInfoBytesPerLook;
  std::string bytes;
  for (size_t records = 0; records < kMaxRecordsPerLook && position_ + kRecordHeaderBytes <= end; ++records) {
    if (!ReadWhole(file, position_, kRecordHeaderBytes, bytes)) break;
    std::string_view rest = bytes;
    uint32_t kind = 0;
    uint32_t total_bytes = 0;
    Take(rest, kind);
    Take(rest, total_bytes);
    if (total_bytes < kRecordHeaderBytes) {
      broken_ = true;
      break;
    }
    if (position_ + total_bytes > end) break;  // not all there yet
    if (kind == kDebugInfo && total_bytes <= kMaxDebugInfoBytes) {
      if (total_bytes > debug_info_left) break;
      debug_info_left -= total_bytes;
    }
    any |= ReadRecord(file, kind, position_ + kRecordHeaderBytes, position_ + total_bytes, max_bytes);
    if (full_) break;
    position_ += total_bytes;
  }
  return any;
}

bool JitDump::ReadRecord(const Fd& file, uint32_t kind, uint64_t begin, uint64_t end, size_t max_bytes) {
  std::string bytes;
  switch (kind) {
    case kLoad:
      if (ReadWhole(file, begin, std::min(end - begin, kMaxLoadBytes), bytes)) Load(bytes, max_bytes);
      return !full_;
    case kMove:
      if (ReadWhole(file, begin, std::min(end - begin, kMaxLoadBytes), bytes)) Move(bytes);
      return true;
    case kDebugInfo:
      if (end - begin <= kMaxDebugInfoBytes && ReadWhole(file, begin, end - begin, bytes))
        TakeLines(bytes, max_bytes);
      return false;
    default:
      return false;  // unwinding tables, the end, what came later than version 1
  }
}

void JitDump::Load(std::string_view body, size_t max_bytes) {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t address = 0;
  Code code;
  std::string_view name;
  if (!Take(body, pid) || !Take(body, tid) || !Take(body, vma) || !Take(body, address) ||
      !Take(body, code.size) || !Take(body, code.index) || !TakeText(body, name))
    return DropLines();
  code.name = ToUtf8(name);
  code.bytes = sizeof(Code) + kCodeOverhead + code.name.size();
  if (bytes_ + code.bytes > max_bytes) {
    full_ = true;
    return;
  }
  bytes_ += code.bytes;
  if (lines_address_ == address) {
    code.bytes += std::exchange(lines_bytes_, 0);
    code.lines = std::exchange(lines_, {});
    std::ranges::stable_sort(code.lines, {}, &Line::offset);
    if (!code.lines.empty() && code.lines.front().offset == kElfHeaderBytes)
      for (Line& line : code.lines) line.offset -= kElfHeaderBytes;
  }
  DropLines();
  Put(address, std::move(code));
}

void JitDump::Move(std::string_view body) {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t size = 0;
  uint64_t index = 0;
  if (!Take(body, pid) || !Take(body, tid) || !Take(body, vma) || !Take(body, from) || !Take(body, to) ||
      !Take(body, size) || !Take(body, index))
    return;
  const auto moved = codes_.find(from);
  if (moved == codes_.end() || moved->second.index != index) return;
  Code code = std::move(moved->second);
  codes_.erase(moved);  // its bytes move with it
  Put(to, std::move(code));
}

// Entries of u64 address, i32 line, i32 discriminator, file; 0xff stands for the file of the entry before.
void JitDump::TakeLines(std::string_view body, size_t max_bytes) {
  uint64_t count = 0;
  DropLines();
  if (!Take(body, lines_address_) || !Take(body, count)) return;
  std::shared_ptr<const std::string> file;
  std::vector<Line> lines;
  size_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t address = 0;
    int32_t line = 0;
    int32_t discriminator = 0;
    std::string_view name;
    if (!Take(body, address) || !Take(body, line) || !Take(body, discriminator) || !TakeText(body, name))
      break;
    if (name != "\xff" && (file == nullptr || *file != name)) {
      file = IsPath(name) ? std::make_shared<const std::string>(name) : nullptr;
      if (file != nullptr) bytes += name.size() + kFileOverhead;
    }
    // Some versions of V8 write files as something else, and lose their place.
    if (address < lines_address_ || file == nullptr || line <= 0) continue;
    lines.push_back({address - lines_address_, line, file});
  }
  lines.shrink_to_fit();
  bytes += lines.size() * sizeof(Line);
  if (bytes_ + bytes > max_bytes) {
    full_ = true;
    return;
  }
  bytes_ += bytes;
  lines_bytes_ = bytes;
  lines_ = std::move(lines);
}

void JitDump::DropLines() {
  bytes_ -= std::exchange(lines_bytes_, 0);
  lines_ = {};
}

void JitDump::Put(uint64_t address, Code code) {
  if (code.size == 0 || code.size > std::numeric_limits<uint64_t>::max() - address) {
    bytes_ -= code.bytes;
    return;
  }
  auto first = codes_.lower_bound(address);
  if (first != codes_.begin() && std::prev(first)->first + std::prev(first)->second.size > address) --first;
  Erase(first, codes_.lower_bound(address + code.size));
  codes_.emplace(address, std::move(code));
}

void JitDump::Erase(std::map<uint64_t, Code>::iterator first, std::map<uint64_t, Code>::iterator last) {
  for (auto erased = first; erased != last; ++erased) bytes_ -= erased->second.bytes;
  codes_.erase(first, last);
}

std::optional<JitDump::Symbol> JitDump::Find(uint64_t address) const {
  auto at = codes_.upper_bound(address);
  if (at == codes_.begin()) return std::nullopt;
  --at;
  const auto& [begin, code] = *at;
  if (address - begin >= code.size) return std::nullopt;
  Symbol symbol{.address = begin, .size = code.size, .name = code.name};
  const auto line = std::ranges::upper_bound(code.lines, address - begin, {}, &Line::offset);
  if (line != code.lines.begin()) {
    symbol.file = *std::prev(line)->file;
    symbol.line = std::prev(line)->line;
  }
  return symbol;
}

}  // namespace gpusonde::symbols
