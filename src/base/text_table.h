// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gpusonde {

// A column of a table for a terminal. Columns of numbers are never cut: where there is no room they are left
// out.
struct TextColumn {
  std::string title;
  std::vector<std::string> cells = {};  // printable
  bool right = false;                   // aligned to the right
  // Left out before columns with a smaller number; 0: only when nothing else is left.
  int leave_out = 0;
  // Columns that may be cut: their smallest width, and their largest. Both 0: the widest cell's.
  size_t min_width = 0;
  size_t max_width = 0;
  // Draws a cell of a column that may be cut in a width; null: CutToWidth of the cell.
  std::function<std::string(size_t row, size_t width)> draw = nullptr;
};

// The lines of a table, the titles first: none is wider than `width` (0: unlimited). What is left of the
// width goes to the columns that may be cut, those to the right first. Columns without a filled cell are left
// out.
std::vector<std::string> LayOutTable(std::vector<TextColumn> columns, size_t width);

}  // namespace gpusonde
