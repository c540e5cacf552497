// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::analyze {

// Numbers names in order of first use, so two tables number names differently; merging goes through AddAll.
// Not thread-safe: each thread has its own.
//
// Memory is bounded: of more than kMaxNames names, those with the smallest hashes are kept, and all others
// are one, kOther. Which are kept doesn't depend on the order of names, because a dropped hash stays larger
// than kMaxNames others. Numbers stay valid: that of a dropped name means kOther, see Canonical. A table
// keeps up to twice as many until Finish; of n different names, about kMaxNames · (1 + ln(n / kMaxNames))
// get a number.
class NameTable {
 public:
  static constexpr size_t kMaxNames = 50'000;
  static constexpr std::string_view kOther = "(other)";

  // The same number for the same bytes, until the name is dropped.
  uint32_t Add(std::string_view name) {
    const auto found = ids_.find(name);
    return found != ids_.end() ? found->second : Insert(name);
  }
  // Adds all names of another table; returns their numbers here, indexed by their numbers there.
  std::vector<uint32_t> AddAll(const NameTable& other);
  // Reduces to the bound.
  void Finish();

  // Whether any name was dropped; then numbers must be looked up before they are compared or shown.
  bool has_dropped() const { return !dropped_.empty(); }
  // The number of kOther for that of a dropped name, else the number itself.
  uint32_t Canonical(uint32_t id) const { return id < dropped_.size() && dropped_[id] ? *other_ : id; }

  // In the order of their numbers.
  template <class Archive>
  void Transfer(Archive& archive) {
    std::vector<std::string> names(names_.begin(), names_.end());
    std::vector<uint32_t> dropped;
    for (uint32_t i = 0; i < dropped_.size(); ++i)
      if (dropped_[i]) dropped.push_back(i);
    uint64_t limit = limit_;
    archive(names);
    archive(dropped);
    archive(limit);
    if constexpr (Archive::kReads) archive.Require(Restore(std::move(names), dropped, limit));
  }

  // Empty for a dropped name.
  std::string_view operator[](uint32_t id) const { return names_[id]; }
  size_t size() const { return names_.size(); }
  // A hash of the name's bytes, equal in every table, process and machine.
  static uint64_t HashOf(std::string_view name);
  // Of each name, by its number.
  std::vector<uint64_t> Hashes() const;

 private:
  uint32_t Insert(std::string_view name);
  uint32_t Append(std::string_view name);
  uint32_t OtherId();
  void Prune();
  // False if the parts contradict each other.
  bool Restore(std::vector<std::string> names, std::span<const uint32_t> dropped, uint64_t limit);

  std::deque<std::string> names_;  // a deque, so that keys of ids_ stay valid
  std::unordered_map<std::string_view, uint32_t> ids_;
  uint64_t limit_ = std::numeric_limits<uint64_t>::max();  // of hashes of names that are kept
  std::optional<uint32_t> other_;
  std::vector<bool> dropped_;  // by number: dropped
};

}  // namespace gpusonde::analyze
