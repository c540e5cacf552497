// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace gpusonde::symbols {

// Code that a process makes at run time, as it tells in jit-PID.dump, a file that it maps so that profilers
// find it: JVM agents, LLVM's and .NET's compilers, node --perf-prof (which writes only every 2 MiB: its perf
// map tells sooner). Unlike a perf map it knows lines, and code that was replaced. Format:
// tools/perf/Documentation/jitdump-specification.txt in the Linux source, version 1.
//
// The file is the process's own and grows while it is read: what makes no sense ends the reading for good,
// what is not all there yet is read the next time. Not thread-safe.
class JitDump {
 public:
  struct Symbol {
    uint64_t address = 0;
    uint64_t size = 0;
    // Valid until the next Follow.
    std::string_view name;
    std::string_view file;  // empty when unknown
    int32_t line = 0;       // of the address; 0: unknown
  };

  // What one Follow reads, at most; takes 40 ms. A server on the JVM compiles some 20,000 methods.
  static constexpr size_t kMaxRecordsPerLook = 16'384;
  static constexpr uint64_t kMaxDebugInfoBytesPerLook = uint64_t{8} << 20;

  // Reads records that `file` holds beyond what was read before; whether they told of any code. It must be
  // the same file every time. What is kept takes at most `max_bytes`: at the first record without room it
  // stops, and is full().
  bool Follow(const Fd& file, size_t max_bytes);

  // The code at the address that was told of last.
  std::optional<Symbol> Find(uint64_t address) const;

  size_t size() const { return codes_.size(); }
  // Of memory.
  size_t bytes() const { return bytes_; }
  // Whether something made no sense.
  bool broken() const { return broken_; }
  // Whether the last Follow left records out for want of room.
  bool full() const { return full_; }

 private:
  struct Line {
    uint64_t offset = 0;  // from the begin of the code
    int32_t line = 0;
    std::shared_ptr<const std::string> file;
  };
  struct Code {
    uint64_t size = 0;
    uint64_t index = 0;
    std::string name;
    std::vector<Line> lines;  // by offset
    size_t bytes = 0;         // of memory
  };

  bool ReadHeader(const Fd& file);
  // Whether it told of code.
  bool ReadRecord(const Fd& file, uint32_t kind, uint64_t begin, uint64_t end, size_t max_bytes);
  void Load(std::string_view body, size_t max_bytes);
  void Move(std::string_view body);
  void TakeLines(std::string_view body, size_t max_bytes);
  void DropLines();
  void Put(uint64_t address, Code code);
  void Erase(std::map<uint64_t, Code>::iterator first, std::map<uint64_t, Code>::iterator last);

  uint64_t position_ = 0;  // of the next record; 0 before the header
  bool broken_ = false;
  bool full_ = false;
  size_t bytes_ = 0;                // of codes_ and lines_
  std::map<uint64_t, Code> codes_;  // by address; none overlaps another
  // Of the code that is told of next.
  uint64_t lines_address_ = 0;
  std::vector<Line> lines_;
  size_t lines_bytes_ = 0;
};

}  // namespace gpusonde::symbols
