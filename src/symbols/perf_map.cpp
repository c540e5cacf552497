// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <algorithm>
#include <charconv>

namespace gpusonde::symbols {
namespace {

// How far back an entry that covers an address is looked for; JITs append, so stale entries pile up only a
// little.
constexpr ptrdiff_t kMaxOverlap = 64;

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

PerfMap PerfMap::Parse(std::string text) {
  PerfMap map;
  map.text_ = std::move(text);
  const std::string_view all = map.text_;
  size_t begin = 0;
  while (begin < all.size()) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    size_t position = 0;
    Entry entry{};
    if (map.entries_.size() < kMaxEntries && TakeHex(line, position, entry.address) &&
        TakeHex(line, position, entry.size) && position < line.size()) {
      entry.name = begin + position;
      entry.name_size = line.size() - position;
      map.entries_.push_back(entry);
    } else if (!line.empty()) {
      ++map.malformed_lines_;
    }
    begin = end + 1;
  }
  map.entries_.shrink_to_fit();
  std::ranges::stable_sort(map.entries_, {}, &Entry::address);
  return map;
}

std::optional<PerfMap::Symbol> PerfMap::Find(uint64_t address) const {
  auto entry = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  const auto first = entry - std::min(entry - entries_.begin(), kMaxOverlap);
  const Entry* found = nullptr;
  while (entry != first) {
    --entry;
    if (address - entry->address >= entry->size) continue;
    // Names lie in the text in the order of the lines, so the larger position is the newer entry.
    if (found == nullptr || entry->name > found->name) found = &*entry;
  }
  if (found == nullptr) return std::nullopt;
  return Symbol{found->address, found->size, std::string_view(text_).substr(found->name, found->name_size)};
}

}  // namespace gpusonde::symbols
