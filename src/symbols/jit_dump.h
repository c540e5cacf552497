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

// The code that a process compiled at run time, as described in its jit-PID.dump, a file that the process
// maps so that profilers find it. JVM agents, the compilers of LLVM and .NET, and node --perf-prof write such
// files (node only every 2 MiB, so its perf map has new code sooner). Unlike a perf map it has source lines,
// and shows which code was replaced. Format: tools/perf/Documentation/jitdump-specification.txt in the Linux
// source, version 1.
//
// The process owns the file, which is untrusted and grows while it is read. Reading stops for good at a
// malformed record; an incomplete one is read the next time. Not thread-safe.
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

  // The most that one Follow reads, which takes 40 ms. A server on the JVM compiles some 20,000 methods.
  static constexpr size_t kMaxRecordsPerLook = 16'384;
  static constexpr uint64_t kMaxDebugInfoBytesPerLook = uint64_t{8} << 20;

  // Reads the records that were appended to `file`, which must be the same file every time. Returns whether
  // any of them describes code. Keeps at most `max_bytes`: stops at the first record without room, and is
  // full() then.
  bool Follow(const Fd& file, size_t max_bytes);

  // The code at the address, by the newest record about it.
  std::optional<Symbol> Find(uint64_t address) const;

  size_t size() const { return codes_.size(); }
  // The memory in use.
  size_t bytes() const { return bytes_; }
  // Whether a record was malformed.
  bool broken() const { return broken_; }
  // Whether the last Follow left records out for lack of room.
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
  // Returns whether the record describes code.
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
  // The lines of the code that the next record describes.
  uint64_t lines_address_ = 0;
  std::vector<Line> lines_;
  size_t lines_bytes_ = 0;
};

}  // namespace gpusonde::symbols
