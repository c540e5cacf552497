// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace gpusonde::analyze {

// Mixes the bits of a key; a bijection (the finaliser of MurmurHash3, public domain).
constexpr uint64_t MixBits(uint64_t key) {
  key = (key ^ key >> 33) * 0xFF51AFD7ED558CCD;
  key = (key ^ key >> 33) * 0xC4CEB9FE1A85EC53;
  return key ^ key >> 33;
}

// Sums by key in bounded memory: the keys with the kMax smallest hashes have sums of their own, all others
// share one. The choice doesn't depend on the order of keys, because a dropped hash stays larger than kMax
// others; so the kept sums are complete.
//
// Value needs a default and Merge(const Value&). Not thread-safe.
template <class Value>
class BoundedTable {
 public:
  explicit BoundedTable(size_t max) : max_(max), slots_(kFirstSlots, kEmpty) {}

  // The sum for a key, identified by a well-mixed hash that no other key has; valid while moves() is
  // unchanged. `is_new` says whether it was created.
  Value& At(uint64_t hash, bool& is_new) {
    is_new = false;
    if (hash > limit_) return other_;
    for (size_t slot = hash & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      const uint32_t index = slots_[slot];
      if (index == kEmpty) break;
      if (entries_[index].first == hash) return entries_[index].second;
    }
    return Insert(hash, is_new);
  }

  // Changes whenever sums may have moved in memory.
  uint64_t moves() const { return moves_; }

  // Reduces to the allowed number of keys, sorted by hash. Don't call At afterwards.
  void Finish() {
    std::ranges::sort(entries_, {}, &Entry::first);
    if (entries_.size() > max_) Prune();
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    uint64_t count = entries_.size();
    archive(count);
    if constexpr (Archive::kReads) {
      *this = BoundedTable(max_);
      for (; count > 0 && archive.ok(); --count) {
        uint64_t hash = 0;
        Value value;
        archive(hash);
        archive(value);
        bool is_new = false;
        Value& mine = At(hash, is_new);
        archive.Require(is_new);  // else it was there twice, or there are too many
        if (archive.ok()) mine = std::move(value);
      }
    } else {
      for (auto& [hash, value] : entries_) {
        archive(hash);
        archive(value);
      }
    }
    archive(other_);
  }

  using Entry = std::pair<uint64_t, Value>;
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // The sum of all keys beyond the bound.
  const Value& other() const { return other_; }
  Value& other() { return other_; }

 private:
  static constexpr uint32_t kEmpty = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kFirstSlots = 64;

  Value& Insert(uint64_t hash, bool& is_new) {
    ++moves_;
    if (entries_.size() == 2 * max_) {
      std::ranges::sort(entries_, {}, &Entry::first);
      Prune();
      if (hash > limit_) return other_;
    }
    is_new = true;
    entries_.emplace_back(hash, Value());
    if (2 * entries_.size() > slots_.size())
      Rehash(2 * slots_.size());
    else
      Place(hash, static_cast<uint32_t>(entries_.size() - 1));
    return entries_.back().second;
  }

  void Prune() {
    limit_ = entries_[max_ - 1].first;
    for (size_t i = max_; i < entries_.size(); ++i) other_.Merge(entries_[i].second);
    entries_.resize(max_);
    Rehash(slots_.size());
  }

  void Rehash(size_t slots) {
    slots_.assign(slots, kEmpty);
    for (uint32_t i = 0; i < entries_.size(); ++i) Place(entries_[i].first, i);
  }

  void Place(uint64_t hash, uint32_t index) {
    size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = index;
  }

  size_t max_;
  uint64_t moves_ = 0;
  uint64_t limit_ = std::numeric_limits<uint64_t>::max();
  std::vector<uint32_t> slots_;  // indices into entries_, by the low bits of the hash
  std::vector<Entry> entries_;
  Value other_;
};

}  // namespace gpusonde::analyze
