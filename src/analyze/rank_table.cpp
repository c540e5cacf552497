// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_table.h"

#include <limits>

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxKeys = std::numeric_limits<uint16_t>::max();

}  // namespace

std::optional<uint16_t> RankTable::Add(const RankKey& rank) {
  if (last_rank_ < ranks_.size() && ranks_[last_rank_] == rank) return last_rank_;
  const auto found = rank_ids_.find(rank);
  if (found != rank_ids_.end()) {
    last_rank_ = found->second;
    return last_rank_;
  }
  const std::optional<uint16_t> process = AddProcess(rank.process);
  if (!process.has_value() || ranks_.size() == kMaxKeys) return std::nullopt;
  last_rank_ = static_cast<uint16_t>(ranks_.size());
  rank_ids_.emplace(rank, last_rank_);
  ranks_.push_back(rank);
  process_of_.push_back(*process);
  return last_rank_;
}

std::optional<uint16_t> RankTable::AddProcess(int64_t process) {
  if (last_process_ < processes_.size() && processes_[last_process_] == process) return last_process_;
  const auto found = process_ids_.find(process);
  if (found != process_ids_.end()) {
    last_process_ = found->second;
    return last_process_;
  }
  if (processes_.size() == kMaxKeys) return std::nullopt;
  last_process_ = static_cast<uint16_t>(processes_.size());
  process_ids_.emplace(process, last_process_);
  processes_.push_back(process);
  return last_process_;
}

}  // namespace gpusonde::analyze
