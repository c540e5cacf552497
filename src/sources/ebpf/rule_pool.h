// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sources/ebpf/user_shares.h"
#include "unwind/rule_set.h"

namespace gpusonde::ebpf {

// The numbers under which the kernel's programs know unwind rules, one for all files that use the rule: files
// have some hundreds, mostly the same ones. A rule has its number while a file uses it, and counts for the
// user for whose file it was added. Not thread-safe.
class RulePool {
 public:
  // No user may have more than these, where a file of a compiler's has some hundreds.
  static constexpr uint64_t kMaxPerUser = GPUSONDE_UNWIND_RULES / 8;
  static constexpr uint64_t kMaxOfUsers = GPUSONDE_UNWIND_RULES / 2;

  // The numbers of a file's rules, which are all different, in their order, and in `added` those that the
  // kernel doesn't know yet. With a shortage nothing is changed.
  Shortage Acquire(std::span<const unwind::Rule> rules, int32_t user_id, std::vector<uint16_t>& numbers,
                   std::vector<uint16_t>& added);

  // What Acquire gave is no longer used, by no program either.
  void Release(std::span<const uint16_t> numbers);

  const unwind::Rule& At(uint16_t number) const { return slots_[number].rule; }

 private:
  struct Slot {
    unwind::Rule rule{};
    int64_t uses = 0;  // files
    int32_t user_id = 0;
  };

  std::vector<Slot> slots_;  // by number
  std::vector<uint16_t> free_;
  std::unordered_map<unwind::Rule, uint16_t, unwind::RuleHash, unwind::RuleEqual> numbers_;
  UserShares shares_{kMaxPerUser, kMaxOfUsers};
};

}  // namespace gpusonde::ebpf
