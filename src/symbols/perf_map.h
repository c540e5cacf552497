// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::symbols {

// Code that a process made at run time, as it tells in /tmp/perf-PID.map: lines of "START SIZE name", hex,
// written by CPython 3.12 -X perf, node --perf-basic-prof, JVM agents. Format:
// tools/perf/Documentation/jit-interface.txt in the Linux source.
class PerfMap {
 public:
  struct Symbol {
    uint64_t address = 0;
    uint64_t size = 0;
    std::string_view name;  // valid as long as the map
  };

  // Lines that don't parse are skipped and counted, and so are those after the first kMaxEntries. Where
  // entries overlap, the later line is newer and wins.
  static PerfMap Parse(std::string text);

  static constexpr size_t kMaxEntries = 1'000'000;  // 32 MB: a shortest line is five bytes, an entry 32

  std::optional<Symbol> Find(uint64_t address) const;
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return text_.capacity() + entries_.capacity() * sizeof(Entry); }
  size_t malformed_lines() const { return malformed_lines_; }

 private:
  struct Entry {
    uint64_t address;
    uint64_t size;
    size_t name, name_size;  // in text_
  };
  std::string text_;
  std::vector<Entry> entries_;  // by address, then by line
  size_t malformed_lines_ = 0;
};

}  // namespace gpusonde::symbols
