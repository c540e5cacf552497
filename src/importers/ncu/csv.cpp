// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/csv.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"

namespace gpusonde::importers::ncu {
namespace {

// Columns that are no metrics and aren't read.
constexpr std::array<std::string_view, 10> kOthers = {"Kernel Time",
                                                      "Context",
                                                      "Stream",
                                                      "CC",
                                                      "Section Name",
                                                      "Rule Name",
                                                      "Rule Type",
                                                      "Rule Description",
                                                      "Estimated Speedup Type",
                                                      "Estimated Speedup"};

}  // namespace

std::optional<size_t> RowLength(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const bool is_row = text[0] == '"' || IsDigit(text[0]);
  bool quoted = false;
  for (size_t at = 0;; ++at) {
    at = is_row ? text.find_first_of("\"\n", at) : text.find('\n', at);
    if (at == std::string_view::npos) return std::nullopt;
    if (text[at] == '"')
      quoted = !quoted;
    else if (!quoted)
      return at + 1;
  }
}

const std::vector<std::string_view>& RowParser::Parse(std::string_view row) {
  while (row.ends_with('\n') || row.ends_with('\r')) row.remove_suffix(1);
  cells_.clear();
  unquoted_.clear();
  unquoted_.reserve(row.size());  // so that it never moves
  for (size_t at = 0;;) {
    if (at == row.size() || row[at] != '"') {
      const size_t end = std::min(row.find(',', at), row.size());
      cells_.push_back(row.substr(at, end - at));
      at = end;
    } else {
      const size_t begin = unquoted_.size();
      for (++at; at < row.size(); ++at) {
        if (row[at] == '"' && (at + 1 == row.size() || row[at + 1] != '"')) break;
        if (row[at] == '"') ++at;
        unquoted_ += row[at];
      }
      cells_.push_back(std::string_view(unquoted_).substr(begin));
      at = std::min(row.find(',', std::min(at, row.size())), row.size());
    }
    if (at == row.size()) return cells_;
    ++at;
  }
}

bool IsDeviceAttribute(std::string_view metric) { return metric.starts_with("device__attribute_"); }

std::optional<Columns> ReadColumns(const std::vector<std::string_view>& cells) {
  Columns columns;
  const std::array<std::pair<std::string_view, size_t*>, 11> known = {{
      {"ID", &columns.id},
      {"Process ID", &columns.process},
      {"Process Name", &columns.process_name},
      {"Host Name", &columns.host},
      {"Kernel Name", &columns.kernel},
      {"Block Size", &columns.block},
      {"Grid Size", &columns.grid},
      {"Device", &columns.device},
      {"Metric Name", &columns.metric},
      {"Metric Unit", &columns.unit},
      {"Metric Value", &columns.value},
  }};
  columns.count = cells.size();
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto found = std::ranges::find(known, cells[i], &std::pair<std::string_view, size_t*>::first);
    if (found != known.end())
      *found->second = i;
    else if (!cells[i].empty() && !IsDeviceAttribute(cells[i]) &&
             std::ranges::find(kOthers, cells[i]) == kOthers.end())
      columns.metrics.emplace_back(i, cells[i]);
  }
  if (columns.id == Columns::kNone || columns.kernel == Columns::kNone) return std::nullopt;
  if (columns.is_long()) columns.metrics.clear();
  return columns;
}

}  // namespace gpusonde::importers::ncu
