// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "unwind/cfi.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// The unwind table of one file as wire/unwind.h describes it, not yet in shards.
struct Table {
  struct Page {
    uint32_t first = 0;  // in rows
    uint32_t count = 0;
  };
  // Code that is mapped together.
  struct Segment {
    uint64_t file_offset = 0, size = 0, address = 0;
  };

  uint64_t base = 0;        // the file's address that the first page begins at
  std::vector<Page> pages;  // for each 64 KiB
  std::vector<uint32_t> rows;
  std::vector<Segment> segments;
  int64_t functions = 0;  // that it has rows for
  int64_t malformed = 0;  // entries that could not be read
};

// What to subtract from an address in a mapping of a file, which begins at `start` with the byte at
// `file_offset`, to have the offset that its table's pages count from. Nothing when it maps no code.
std::optional<uint64_t> BiasOf(const std::vector<Table::Segment>& segments, uint64_t base, uint64_t start,
                               uint64_t file_offset);

// Compiles a Go program's own table, the file's .eh_frame for functions that it leaves out, and .debug_frame
// for those that both do. A file without any has a table without pages. Errors: kCorrupt for what is no
// 64-bit ELF file; kUnsupported when it covers 2 GiB and more.
Result<Table> CompileFile(int fd, const std::string& name, RuleSet& rules);

// The same for sections at hand. Functions outside `segments` are left out.
Result<Table> Compile(const std::vector<CfiSection>& sections, std::vector<Table::Segment> segments,
                      RuleSet& rules);

}  // namespace gpusonde::unwind
