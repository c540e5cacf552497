// SPDX-License-Identifier: Apache-2.0
#include "analyze/name_table.h"

namespace gpusonde::analyze {

uint32_t NameTable::Insert(std::string_view name) {
  const auto id = static_cast<uint32_t>(names_.size());
  ids_.emplace(names_.emplace_back(name), id);
  return id;
}

std::vector<uint32_t> NameTable::AddAll(const NameTable& other) {
  std::vector<uint32_t> ids;
  ids.reserve(other.size());
  for (const std::string& name : other.names_) ids.push_back(Add(name));
  return ids;
}

uint64_t NameTable::HashOf(std::string_view name) {
  // FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/).
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

std::vector<uint64_t> NameTable::Hashes() const {
  std::vector<uint64_t> hashes;
  hashes.reserve(names_.size());
  for (const std::string& name : names_) hashes.push_back(HashOf(name));
  return hashes;
}

}  // namespace gpusonde::analyze
