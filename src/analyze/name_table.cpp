// SPDX-License-Identifier: Apache-2.0
#include "analyze/name_table.h"

#include <algorithm>
#include <utility>

#include "analyze/stats/bounded_table.h"

namespace gpusonde::analyze {
namespace {

uint64_t OrderOf(std::string_view name) { return MixBits(NameTable::HashOf(name)); }

}  // namespace

uint32_t NameTable::Append(std::string_view name) {
  const auto id = static_cast<uint32_t>(names_.size());
  ids_.emplace(names_.emplace_back(name), id);
  return id;
}

uint32_t NameTable::Insert(std::string_view name) {
  if (ids_.size() >= kMaxNames && name != kOther) {
    if (limit_ != std::numeric_limits<uint64_t>::max() && OrderOf(name) > limit_) return OtherId();
    if (ids_.size() >= 2 * kMaxNames) {
      Prune();
      if (OrderOf(name) > limit_) return OtherId();
    }
  }
  return Append(name);
}

uint32_t NameTable::OtherId() {
  if (!other_.has_value()) other_ = Add(kOther);
  return *other_;
}

void NameTable::Prune() {
  const uint32_t other = OtherId();
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (const auto& [name, id] : ids_)
    if (id != other) order.emplace_back(OrderOf(name), id);
  if (order.size() <= kMaxNames) return;
  const auto last = order.begin() + (kMaxNames - 1);
  std::ranges::nth_element(order, last);
  limit_ = last->first;
  dropped_.resize(names_.size());
  for (auto one = last + 1; one != order.end(); ++one) {
    ids_.erase(names_[one->second]);
    names_[one->second] = std::string();
    dropped_[one->second] = true;
  }
}

void NameTable::Finish() {
  if (ids_.size() > kMaxNames) Prune();
}

std::vector<uint32_t> NameTable::AddAll(const NameTable& other) {
  std::vector<uint32_t> ids;
  ids.reserve(other.size());
  for (uint32_t id = 0; id < other.size(); ++id) {
    const bool is_dropped = id < other.dropped_.size() && other.dropped_[id];
    ids.push_back(is_dropped ? OtherId() : Add(other[id]));
  }
  return ids;
}

bool NameTable::Restore(std::vector<std::string> names, std::span<const uint32_t> dropped, uint64_t limit) {
  *this = NameTable();
  limit_ = limit;
  if (!dropped.empty()) dropped_.resize(names.size());
  for (const uint32_t id : dropped) {
    if (id >= names.size() || !names[id].empty()) return false;
    dropped_[id] = true;
  }
  for (uint32_t id = 0; id < names.size(); ++id) {
    const std::string& name = names_.emplace_back(std::move(names[id]));
    if (id < dropped_.size() && dropped_[id]) continue;
    if (!ids_.emplace(name, id).second) return false;  // it is there twice
    if (name == kOther) other_ = id;
  }
  return dropped.empty() || other_.has_value();
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
