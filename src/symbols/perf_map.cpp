// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

namespace gpusonde::symbols {
namespace {

// How far back an entry that covers an address is looked for; JITs append, so stale entries pile up only a
// little.
constexpr ptrdiff_t kMaxOverlap = 64;

// Also the longest line.
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kMaxNames = std::numeric_limits<uint32_t>::max();  // Entry::name

bool TakeHex(std::string_view text, size_t& position, uint64_t& value) {
  if (text.substr(position).starts_with("0x")) position += 2;
  const auto [end, error] = std::from_chars(text.data() + position, text.data() + text.size(), value, 16);
  if (error != std::errc()) return false;
  position = static_cast<size_t>(end - text.data());
  if (position >= text.size() || text[position] != ' ') return false;
  ++position;
  return true;
}

}  // namespace

bool PerfMap::Follow(const Fd& file, size_t max_bytes) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return false;
  const auto size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  bool changed = false;
  const bool written = status.st_mtim.tv_sec != written_.tv_sec || status.st_mtim.tv_nsec != written_.tv_nsec;
  if (status.st_dev != device_ || status.st_ino != inode_ || size < position_ ||
      (size == position_ && written)) {
    changed = !entries_.empty();
    *this = {};
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  written_ = status.st_mtim;
  full_ = false;
  const size_t before = entries_.size();
  const uint64_t end = position_ + std::min(size - position_, kMaxBytesPerLook);
  std::string piece;
  while (position_ < end && !full_) {
    piece.resize(std::min<uint64_t>(end - position_, kPieceBytes));
    const ssize_t count = ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(position_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // it was cut meanwhile
    const size_t taken = AddLines(std::string_view(piece).substr(0, static_cast<size_t>(count)), max_bytes);
    if (taken == 0) break;
    position_ += taken;
  }
  const auto added = entries_.begin() + static_cast<ptrdiff_t>(before);
  const auto by_address = [](const Entry& a, const Entry& b) { return a.address < b.address; };
  std::stable_sort(added, entries_.end(), by_address);
  std::inplace_merge(entries_.begin(), added, entries_.end(), by_address);
  return changed || entries_.size() > before;
}

size_t PerfMap::AddLines(std::string_view text, size_t max_bytes) {
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    const bool skipped = std::exchange(in_long_line_, false);
    if (!skipped && !AddLine(text.substr(begin, end - begin), max_bytes)) return full_ = true, begin;
    begin = end + 1;
  }
  in_long_line_ |= begin == 0 && text.size() == kPieceBytes;
  return in_long_line_ ? text.size() : begin;
}

bool PerfMap::AddLine(std::string_view line, size_t max_bytes) {
  if (line.empty()) return true;
  size_t position = 0;
  Entry entry{};
  if (!TakeHex(line, position, entry.address) || !TakeHex(line, position, entry.size) ||
      position >= line.size())
    return true;
  const std::string_view name = line.substr(position);
  const auto grown = [](size_t size, size_t capacity) {
    return size <= capacity ? capacity : std::max(size, capacity + capacity / 4);
  };
  const size_t names = grown(names_.size() + name.size(), names_.capacity());
  const size_t entries = grown(entries_.size() + 1, entries_.capacity());
  if (names + entries * sizeof(Entry) > std::min(max_bytes, kMaxNames)) return false;
  names_.reserve(names);
  entries_.reserve(entries);
  entry.name = static_cast<uint32_t>(names_.size());
  entry.name_size = static_cast<uint32_t>(name.size());
  names_.insert(names_.end(), name.begin(), name.end());
  entries_.push_back(entry);
  return true;
}

std::optional<PerfMap::Symbol> PerfMap::Find(uint64_t address) const {
  auto entry = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  const auto first = entry - std::min(entry - entries_.begin(), kMaxOverlap);
  const Entry* found = nullptr;
  while (entry != first) {
    --entry;
    if (address - entry->address >= entry->size) continue;
    // Names lie in the order of the lines, so the larger position is the newer entry.
    if (found == nullptr || entry->name > found->name) found = &*entry;
  }
  if (found == nullptr) return std::nullopt;
  return Symbol{found->address, found->size, std::string_view(names_.data() + found->name, found->name_size)};
}

}  // namespace gpusonde::symbols
