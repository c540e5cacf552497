// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

size_t RuleHash::operator()(const Rule& rule) const noexcept {
  uint64_t hash =
      uint64_t{rule.cfa} << 24 | uint64_t{rule.cfa_register} << 16 | uint64_t{rule.rbp} << 8 | rule.ra;
  for (const int32_t part : {rule.cfa_offset, rule.cfa_add, rule.rbp_offset, rule.ra_offset})
    hash = (hash ^ static_cast<uint32_t>(part)) * 0x9E3779B97F4A7C15 + (hash >> 29);
  return hash;
}

RuleSet::RuleSet() {
  for (const auto kind : {GPUSONDE_CFA_NONE, GPUSONDE_CFA_END, GPUSONDE_CFA_UNSUPPORTED})
    Intern(RuleOfKind(kind));
}

uint16_t RuleSet::Intern(const Rule& rule) {
  if (const auto known = numbers_.find(rule); known != numbers_.end()) return known->second;
  if (rules_.size() >= GPUSONDE_UNWIND_RULES) return kUnsupported;
  const auto number = static_cast<uint16_t>(rules_.size());
  rules_.push_back(rule);
  numbers_.emplace(rule, number);
  return number;
}

}  // namespace gpusonde::unwind
