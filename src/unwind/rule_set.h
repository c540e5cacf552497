// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "wire/unwind.h"

namespace gpusonde::unwind {

using Rule = gpusonde_unwind_rule;

inline bool operator==(const Rule& a, const Rule& b) {
  return a.cfa == b.cfa && a.cfa_register == b.cfa_register && a.rbp == b.rbp && a.ra == b.ra &&
         a.cfa_offset == b.cfa_offset && a.cfa_add == b.cfa_add && a.rbp_offset == b.rbp_offset &&
         a.ra_offset == b.ra_offset;
}

struct RuleHash {
  size_t operator()(const Rule& rule) const noexcept;
};
struct RuleEqual {
  bool operator()(const Rule& a, const Rule& b) const noexcept { return a == b; }
};

// One that needs no more than its kind.
inline Rule RuleOfKind(gpusonde_cfa_kind kind) {
  Rule rule{};
  rule.cfa = kind;
  return rule;
}

// The rules of a table, each once: files have millions of rows and some hundreds of rules. Only grows. Not
// thread-safe.
class RuleSet {
 public:
  static constexpr uint16_t kNone = 0, kEnd = 1, kUnsupported = 2;

  RuleSet();

  // The rule's index; kUnsupported when there are GPUSONDE_UNWIND_RULES already.
  uint16_t Intern(const Rule& rule);

  // By index.
  std::span<const Rule> rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
  std::unordered_map<Rule, uint16_t, RuleHash, RuleEqual> numbers_;
};

}  // namespace gpusonde::unwind
