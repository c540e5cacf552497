// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/rule_pool.h"

#include <algorithm>

namespace gpusonde::ebpf {

Shortage RulePool::Acquire(std::span<const unwind::Rule> rules, int32_t user_id,
                           std::vector<uint16_t>& numbers, std::vector<uint16_t>& added) {
  const auto unknown = static_cast<uint64_t>(
      std::ranges::count_if(rules, [this](const unwind::Rule& rule) { return !numbers_.contains(rule); }));
  if (const Shortage shortage = shares_.Acquire(user_id, unknown); shortage != Shortage::kNone)
    return shortage;
  if (unknown > free_.size() + (GPUSONDE_UNWIND_RULES - slots_.size())) {
    shares_.Release(user_id, unknown);
    return Shortage::kOfAll;
  }
  numbers.clear();
  added.clear();
  for (const unwind::Rule& rule : rules) {
    const auto [known, is_new] = numbers_.try_emplace(rule);
    if (is_new) {
      if (free_.empty()) {
        free_.push_back(static_cast<uint16_t>(slots_.size()));
        slots_.emplace_back();
      }
      known->second = free_.back();
      free_.pop_back();
      slots_[known->second] = {.rule = rule, .uses = 0, .user_id = user_id};
      added.push_back(known->second);
    }
    ++slots_[known->second].uses;
    numbers.push_back(known->second);
  }
  return Shortage::kNone;
}

void RulePool::Release(std::span<const uint16_t> numbers) {
  for (const uint16_t number : numbers) {
    Slot& slot = slots_[number];
    if (--slot.uses > 0) continue;
    numbers_.erase(slot.rule);
    shares_.Release(slot.user_id, 1);
    free_.push_back(number);
  }
}

}  // namespace gpusonde::ebpf
