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

}  // namespace gpusonde::analyze
