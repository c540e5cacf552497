// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace gpusonde::symbols {

// The code that a process compiled at run time, as listed in its /tmp/perf-PID.map: lines of "START SIZE
// name" in hex, which CPython 3.12 -X perf, node --perf-basic-prof and JVM agents write. Format:
// tools/perf/Documentation/jit-interface.txt in the Linux source.
//
// Such files may grow for days, so only what was appended is read. Not thread-safe.
class PerfMap {
 public:
  struct Symbol {
    uint64_t address = 0;
    uint64_t size = 0;
    std::string_view name;  // valid until the next Follow
  };

  // The most that one Follow reads, which takes 30 ms. Node.js with a large application writes some 5 MB.
  static constexpr uint64_t kMaxBytesPerLook = uint64_t{8} << 20;

  // Reads the lines that `file` holds beyond what was read before, kMaxBytesPerLook at most, and returns
  // whether the map changed. Another file than the last time, one that shrank, or one that was written to and
  // has not grown, is read from its begin. A last line without its end is left for the next time. Lines that
  // don't parse are skipped.
  // Where entries overlap, the later line is newer and wins.
  //
  // Keeps at most `max_bytes`: stops at the first line without room, and is full() then.
  bool Follow(const Fd& file, size_t max_bytes);

  std::optional<Symbol> Find(uint64_t address) const;
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return names_.capacity() + entries_.capacity() * sizeof(Entry); }
  // Whether the last Follow left lines out for lack of room.
  bool full() const { return full_; }

 private:
  struct Entry {
    uint64_t address;
    uint64_t size;
    uint32_t name, name_size;  // in names_
  };

  // Adds the lines that end in `text`; how many bytes of it they take.
  size_t AddLines(std::string_view text, size_t max_bytes);
  // False when there is no room.
  bool AddLine(std::string_view line, size_t max_bytes);

  std::vector<char> names_;     // in the order of the lines
  std::vector<Entry> entries_;  // by address, then by line
  dev_t device_ = 0;            // of the file
  ino_t inode_ = 0;
  timespec written_ = {};      // when last, as of the last Follow
  uint64_t position_ = 0;      // of the first line not read
  bool in_long_line_ = false;  // of which some was read already
  bool full_ = false;
};

}  // namespace gpusonde::symbols
