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

// Names as small numbers, in the order in which they were first seen: so the numbers of two tables differ,
// and what has them is merged by way of AddAll. Not thread-safe: each thread has its own.
class NameTable {
 public:
  // The same number for the same bytes.
  uint32_t Add(std::string_view name) {
    const auto found = ids_.find(name);
    return found != ids_.end() ? found->second : Insert(name);
  }
  // The numbers that the names of another table have in this one, by their numbers there.
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
  // Of a name's bytes: the same in every table, process and machine.
  static uint64_t HashOf(std::string_view name);
  // Of each name, by its number.
  std::vector<uint64_t> Hashes() const;

 private:
  uint32_t Insert(std::string_view name);

  std::deque<std::string> names_;  // never moves what ids_ points to
  std::unordered_map<std::string_view, uint32_t> ids_;
};

}  // namespace gpusonde::analyze
