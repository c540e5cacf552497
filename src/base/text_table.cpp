// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <algorithm>
#include <numeric>

#include "base/display_width.h"

namespace gpusonde {
namespace {

// From this width on there is room for two spaces between columns.
constexpr size_t kRoomyWidth = 100;

bool MayBeCut(const TextColumn& column) { return column.max_width > 0; }

size_t NaturalWidth(const TextColumn& column) {
  size_t width = DisplayWidth(column.title);
  for (const std::string& cell : column.cells) width = std::max(width, DisplayWidth(cell));
  return width;
}

// The widths of the columns, those that may be cut at their smallest.
std::vector<size_t> SmallestWidths(const std::vector<TextColumn>& columns) {
  std::vector<size_t> widths;
  for (const TextColumn& column : columns)
    widths.push_back(MayBeCut(column) ? std::max(DisplayWidth(column.title), column.min_width)
                                      : NaturalWidth(column));
  return widths;
}

size_t Sum(const std::vector<size_t>& widths, size_t gap) {
  return std::accumulate(widths.begin(), widths.end(), size_t{0}) + gap * (widths.size() - 1);
}

void AddCell(std::string& line, const std::string& text, bool right, size_t width, bool last) {
  const size_t used = DisplayWidth(text);
  const std::string padding(width - std::min(width, used), ' ');
  if (right) line += padding;
  line += text;
  if (!right && !last) line += padding;
}

}  // namespace

std::vector<std::string> LayOutTable(std::vector<TextColumn> columns, size_t width) {
  std::erase_if(columns, [](const TextColumn& column) {
    return column.draw == nullptr && std::ranges::all_of(column.cells, &std::string::empty);
  });
  const size_t gap = width == 0 || width >= kRoomyWidth ? 2 : 1;
  std::vector<size_t> widths = SmallestWidths(columns);
  while (width > 0 && !columns.empty() && Sum(widths, gap) > width) {
    // Of equals the one to the right.
    const auto least = std::ranges::max_element(columns.rbegin(), columns.rend(), {}, &TextColumn::leave_out);
    columns.erase(std::prev(least.base()));
    widths = SmallestWidths(columns);
  }
  if (columns.empty()) return {};
  size_t room = width == 0 ? size_t{1} << 20 : width - Sum(widths, gap);
  for (size_t i = columns.size(); i-- > 0;) {
    if (!MayBeCut(columns[i])) continue;
    const size_t wanted = std::max(widths[i], columns[i].draw == nullptr
                                                  ? std::min(NaturalWidth(columns[i]), columns[i].max_width)
                                                  : columns[i].max_width);
    const size_t given = std::min(room, wanted - widths[i]);
    widths[i] += given;
    room -= given;
  }
  std::vector<std::string> lines(1 + columns.front().cells.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const TextColumn& column = columns[i];
    const bool last = i + 1 == columns.size();
    AddCell(lines[0], column.title, column.right, widths[i], last);
    for (size_t row = 0; row + 1 < lines.size(); ++row) {
      const std::string cell = column.draw != nullptr ? column.draw(row, widths[i])
                               : MayBeCut(column)     ? CutToWidth(column.cells[row], widths[i])
                                                      : column.cells[row];
      AddCell(lines[row + 1], cell, column.right, widths[i], last);
    }
    if (!last)
      for (std::string& line : lines) line.append(gap, ' ');
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

}  // namespace gpusonde
