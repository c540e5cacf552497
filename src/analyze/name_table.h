// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::analyze {

// Numbers names in order of first use, so two tables number names differently; merging goes through AddAll.
// Not thread-safe: each thread has its own.
class NameTable {
 public:
  // The same number for the same bytes.
  uint32_t Add(std::string_view name) {
    const auto found = ids_.find(name);
    return found != ids_.end() ? found->second : Insert(name);
  }
  // Adds all names of another table; returns their numbers here, indexed by their numbers there.
  std::vector<uint32_t> AddAll(const NameTable& other);

  // In the order of their numbers.
  template <class Archive>
  void Transfer(Archive& archive) {
    if constexpr (Archive::kReads) {
      std::vector<std::string> names;
      archive(names);
      *this = NameTable();
      for (const std::string& name : names) Add(name);
      archive.Require(size() == names.size());
    } else {
      std::vector<std::string> names(names_.begin(), names_.end());
      archive(names);
    }
  }

  std::string_view operator[](uint32_t id) const { return names_[id]; }
  size_t size() const { return names_.size(); }
  // A hash of the name's bytes, equal in every table, process and machine.
  static uint64_t HashOf(std::string_view name);
  // Of each name, by its number.
  std::vector<uint64_t> Hashes() const;

 private:
  uint32_t Insert(std::string_view name);

  std::deque<std::string> names_;  // a deque, so that keys of ids_ stay valid
  std::unordered_map<std::string_view, uint32_t> ids_;
};

}  // namespace gpusonde::analyze
