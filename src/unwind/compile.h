// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "unwind/cfi.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// The unwind table of one file in the form of wire/unwind.h, before it is divided into shards.
struct Table {
  struct Page {
    uint32_t first = 0;  // in rows
    uint32_t count = 0;
  };
  // Code in one mapping.
  struct Segment {
    uint64_t file_offset = 0, size = 0, address = 0;
  };

  uint64_t base = 0;        // the file's address at which the first page begins
  std::vector<Page> pages;  // for each 64 KiB
  std::vector<uint32_t> rows;
  std::vector<Segment> segments;
  int64_t functions = 0;  // with rows
  int64_t malformed = 0;  // entries that could not be parsed
};

// The bias of a mapping that begins at `start` with the file's byte at `file_offset`: an address minus the
// bias is the offset by which the table's pages are indexed. Nullopt when it maps no code.
std::optional<uint64_t> BiasOf(const std::vector<Table::Segment>& segments, uint64_t base, uint64_t start,
                               uint64_t file_offset);

// Compiles the file's table from a Go program's pclntab, .eh_frame and .debug_frame, in this order of
// precedence. A file without any of them has a table without pages. Errors: kCorrupt if it isn't a 64-bit ELF
// file; kUnsupported when it covers 2 GiB or more.
Result<Table> CompileFile(int fd, const std::string& name, RuleSet& rules);

// The same for sections in memory. Functions outside `segments` are skipped.
Result<Table> Compile(const std::vector<CfiSection>& sections, std::vector<Table::Segment> segments,
                      RuleSet& rules);

// A table and its rules, for another process, and the same there. Errors: kCorrupt.
struct CompiledTable {
  Table table;
  std::vector<Rule> rules;
};
std::string Pack(const Table& table, std::span<const Rule> rules);
Result<CompiledTable> Unpack(std::string_view bytes);

}  // namespace gpusonde::unwind
