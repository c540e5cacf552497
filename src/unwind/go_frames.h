// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "symbols/go_table.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// Rules for the functions of a Go program. They keep no register for their callers, so that all is in how
// deep the stack is; but some of the runtime's change to another stack, and from where they have done so on
// the rule says how Go's own traceback gets back (docs/decisions/0060-across-gos-stacks.md). Where things are
// in the runtime is read from the code of runtime.systemstack, which uses each of them, so that it holds for
// every version, stripped or not. Functions that change stacks in a way we don't know have
// GPUSONDE_CFA_UNSUPPORTED there.
class GoFrames {
 public:
  // The code at an address of the file; empty when it can't be read.
  using ReadCode = std::function<std::vector<std::byte>(uint64_t address, uint64_t size)>;

  GoFrames(const symbols::GoTable& table, ReadCode read_code);

  // By address. Fewer than a file can claim: those that can't be are left out.
  const std::vector<symbols::GoTable::Function>& functions() const { return functions_; }

  // Of the table.
  size_t bytes() const { return table_.bytes(); }

  // Calls row(address, rule) for the function's begin and for every address where the rule changes, rising.
  // False when the table breaks off.
  bool Run(const symbols::GoTable::Function& function,
           const std::function<void(uint64_t address, const Rule& rule)>& row) const;

 private:
  // Offsets in the runtime of this program.
  struct Layout {
    bool known = false;
    int32_t g = 0;      // from the thread pointer on: what runs on the thread, a g
    int32_t m = 0;      // in a g: its thread, an m, whose first field is its g0
    int32_t curg = 0;   // in an m: the goroutine it runs
    int32_t sched = 0;  // in a g: the stack pointer and the address at which it stands while it doesn't run
  };
  // A part of a function, by offsets in its code, where another rule holds than its depth gives.
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
