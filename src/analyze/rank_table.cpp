// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_table.h"

#include <limits>

namespace gpusonde::analyze {
namespace {

template <class Key>
std::optional<uint16_t> AddKey(const Key& key, std::vector<Key>& keys, std::map<Key, uint16_t>& ids, uint16_t& last) {
  if (last < keys.size() && keys[last] == key) return last;
  const auto found = ids.find(key);
  if (found == ids.end()) {
    if (keys.size() == std::numeric_limits<uint16_t>::max()) return std::nullopt;
    last = static_cast<uint16_t>(keys.size());
    ids.emplace(key, last);
    keys.push_back(key);
    return last;
  }
  last = found->second;
  return last;
}

}  // namespace

std::optional<uint16_t> RankTable::Add(const RankKey& rank) {
  if (!AddProcess(rank.process).has_value()) return std::nullopt;
  return AddKey(rank, ranks_, rank_ids_, last_rank_);
}

std::optional<uint16_t> RankTable::AddProcess(int64_t process) {
  return AddKey(process, processes_, process_ids_, last_process_);
}

}  // namespace gpusonde::analyze
