// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace gpusonde::symbols {

// The functions of a Go program, from the table by which the Go runtime names and unwinds its own stacks. It
// is part of what is loaded, so that stripped programs have it too; they have nothing else. Source: Go's
// src/runtime/symtab.go (pcHeader, functab, _func) and src/debug/gosym/pclntab.go. Go 1.16 to 1.17 and 1.18
// on, on 64-bit little-endian machines; 1.19 is what it was tried with.
//
// A view of the section's bytes, which must outlive it. Immutable.
class GoTable {
 public:
  struct Function {
    uint64_t start = 0, end = 0;  // the file's own addresses; equal for one that can't be
    uint64_t name = 0;            // where in the section its name is
    uint64_t depths = 0;          // where in the section its stack's depths are; 0: it has none
  };

  // Nothing when the section is of another version, or can't be what it says. `text_start` is where the code
  // of Go begins, for files in which the loader puts that in.
  static std::optional<GoTable> Parse(std::span<const std::byte> section, uint64_t text_start);

  size_t size() const { return count_; }

  // By address, as far as the file is honest.
  Function At(size_t index) const;

  // Of the section.
  size_t bytes() const { return section_.size(); }

  // "main.(*Server).Run", its first `limit` bytes; empty when it isn't there.
  std::string_view NameOf(const Function& function, size_t limit = 8192) const;

  // Calls row(address, bytes) for the function's begin and wherever that changes, rising, until it returns
  // false: how many bytes lie on the stack below the return address. False when the list is cut short.
  bool ForEachDepth(const Function& function,
                    const std::function<bool(uint64_t address, int32_t bytes)>& row) const;

 private:
  GoTable() = default;
  uint64_t Number(uint64_t place, size_t bytes) const;  // 0 beyond the end

  std::span<const std::byte> section_;
  bool offsets_ = false;  // from 1.18 on: what were addresses are offsets from text_start_
  uint64_t text_start_ = 0;
  size_t count_ = 0;
  uint64_t names_ = 0, depths_ = 0, functions_ = 0;  // where these parts begin
};

}  // namespace gpusonde::symbols
