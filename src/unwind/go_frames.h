// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "symbols/go_table.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// Unwind rules for the functions of a Go program. They save no registers for their callers, so that the stack
// depth is enough; but some functions of the runtime switch to another stack, and after the switch the rule
// is how Go's own traceback returns from it (docs/sampling.md, Stacks). The offsets in the runtime's
// structures are read from the code of runtime.systemstack, which uses all of them, so that every version
// works, stripped or not. Functions that switch stacks in an unknown way have GPUSONDE_CFA_UNSUPPORTED there.
class GoFrames {
 public:
  // The code at an address of the file; empty when it can't be read.
  using ReadCode = std::function<std::vector<std::byte>(uint64_t address, uint64_t size)>;

  GoFrames(const symbols::GoTable& table, ReadCode read_code);

  // Sorted by address. Functions that can't exist are omitted.
  const std::vector<symbols::GoTable::Function>& functions() const { return functions_; }

  // Of the table.
  size_t bytes() const { return table_.bytes(); }

  // Calls row(address, rule) for the function's begin and for every address where the rule changes, in
  // ascending order. False when the table is truncated.
  bool Run(const symbols::GoTable::Function& function,
           const std::function<void(uint64_t address, const Rule& rule)>& row) const;

 private:
  // Offsets in the structures of this program's runtime.
  struct Layout {
    bool known = false;
    int32_t g = 0;      // from the thread pointer: the thread's current g
    int32_t m = 0;      // in a g: its thread, an m, whose first field is its g0
    int32_t curg = 0;   // in an m: the goroutine it runs
    int32_t sched = 0;  // in a g: its stack pointer and pc while it isn't running
  };
  // A range of a function's code (offsets) with another rule than the one from its stack depth.
  struct Part {
    uint64_t begin = 0, end = ~uint64_t{0};
    Rule rule{};
  };
  using Parts = std::vector<Part>;

  void ReadLayout(const symbols::GoTable::Function& systemstack);
  Rule SwitchRule(gpusonde_go_switch kind, int32_t saved) const;
  Parts PartsOf(const symbols::GoTable::Function& function) const;
  Parts SystemStack(const std::vector<std::byte>& code) const;
  Parts MCall(const std::vector<std::byte>& code) const;
  Parts MoreStack(const std::vector<std::byte>& code) const;
  Parts CgoCall(const std::vector<std::byte>& code) const;
  Parts Clock(const std::vector<std::byte>& code) const;

  symbols::GoTable table_;
  ReadCode read_code_;
  std::vector<symbols::GoTable::Function> functions_;
  Layout layout_;
  bool calls_back_ = false;  // C code of the program calls Go functions
};

}  // namespace gpusonde::unwind
