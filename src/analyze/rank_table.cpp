// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_table.h"

#include <limits>

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxKeys = std::numeric_limits<uint16_t>::max();

}  // namespace

std::optional<uint16_t> RankTable::Find(const RankKey& rank) {
  uint16_t& recent = recent_ranks_[PlaceOf(rank)];
  const auto found = rank_ids_.find(rank);
  if (found != rank_ids_.end()) return recent = found->second;
  const std::optional<uint16_t> process = AddProcess(rank.process);
  if (!process.has_value() || ranks_.size() == kMaxKeys) return std::nullopt;
  recent = static_cast<uint16_t>(ranks_.size());
  rank_ids_.emplace(rank, recent);
  ranks_.push_back(rank);
  process_of_.push_back(*process);
  return recent;
}

std::optional<uint16_t> RankTable::FindProcess(int64_t process) {
  uint16_t& recent = recent_processes_[static_cast<uint64_t>(process) % kRecent];
  const auto found = process_ids_.find(process);
  if (found != process_ids_.end()) return recent = found->second;
  if (processes_.size() == kMaxKeys) return std::nullopt;
  recent = static_cast<uint16_t>(processes_.size());
  process_ids_.emplace(process, recent);
  processes_.push_back(process);
  return recent;
}

}  // namespace gpusonde::analyze
