// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Comma-separated values as Nsight Compute prints them (RFC 4180): cells may be quoted, quotes in them are
// doubled, and line breaks in quotes belong to the cell.
namespace gpusonde::importers::ncu {

// The length of the row at the beginning of `text`, including its line break; empty if `text` ends first. A
// line that begins with neither a quote nor a digit isn't part of a table and ends with the line, whatever
// quotes it has.
std::optional<size_t> RowLength(std::string_view text);

// The cells of a row, unquoted; valid until the next call.
class RowParser {
 public:
  const std::vector<std::string_view>& Parse(std::string_view row);

 private:
  std::vector<std::string_view> cells_;
  std::string unquoted_;  // cells that had quotes in them
};

// The meaning of a table's columns, from its first row.
struct Columns {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t id = kNone, process = kNone, process_name = kNone, host = kNone, kernel = kNone, block = kNone,
         grid = kNone, device = kNone;
  size_t metric = kNone, unit = kNone, value = kNone;   // of the long form, a metric a row
  std::vector<std::pair<size_t, std::string>> metrics;  // of the wide form, a metric a column
  size_t count = 0;

  bool is_long() const { return metric != kNone && value != kNone; }
};

// Metrics that are properties of the device: the raw page of Nsight Compute 2025.3 has 166 of them. They are
// not read.
bool IsDeviceAttribute(std::string_view metric);

// Nothing if the row is not the first one of a table of kernel launches.
std::optional<Columns> ReadColumns(const std::vector<std::string_view>& cells);

}  // namespace gpusonde::importers::ncu
