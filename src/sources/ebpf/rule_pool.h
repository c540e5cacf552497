// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sources/ebpf/user_shares.h"
#include "unwind/rule_set.h"

namespace gpusonde::ebpf {

// Assigns numbers to unwind rules in the eBPF programs' table. Files share them: a file has some hundreds of
// rules, mostly the same ones as others. A rule keeps its number while any file uses it, and counts towards
// the share of the user for whose file it was added. Not thread-safe.
class RulePool {
 public:
  // Limits for one user and for all users; a file that a compiler has made has some hundreds.
  static constexpr uint64_t kMaxPerUser = GPUSONDE_UNWIND_RULES / 8;
  static constexpr uint64_t kMaxOfUsers = GPUSONDE_UNWIND_RULES / 2;

  // Returns in `numbers` those of a file's rules, in order, and in `added` those that are new to the eBPF
  // programs. The rules must be distinct. With a shortage nothing changes.
  Shortage Acquire(std::span<const unwind::Rule> rules, int32_t user_id, std::vector<uint16_t>& numbers,
                   std::vector<uint16_t>& added);

  // Releases the numbers from one Acquire, once no eBPF program uses them for that file.
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
