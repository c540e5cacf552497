// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/slices.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/saturated.h"

namespace gpusonde::store {
namespace {

// Of a row, for each of its cells. Events that follow each other have at most one; in a damaged file they may
// overlap, and then the rest is summed.
constexpr size_t kMaxEventsPerCell = 4;

}  // namespace

Grid Grid::Of(const TimeRange& range, int columns) {
  const int64_t span_ns = range.to_ns - range.from_ns;
  const int64_t column_ns = span_ns / columns + (span_ns % columns != 0 ? 1 : 0);
  constexpr int64_t kMaxResolutionNs = int64_t{1} << 62;
  return {range, static_cast<int64_t>(std::bit_ceil(
                     static_cast<uint64_t>(std::clamp<int64_t>(column_ns, 1, kMaxResolutionNs))))};
}

SliceSums::SliceSums(const Grid& grid) : grid_(grid), cells_(grid.cells()) {}

void SliceSums::Add(const TimeRange& event, int32_t row_number, int32_t name) {
  const auto& [range, resolution_ns] = grid_;
  const bool is_instant = event.from_ns == event.to_ns;
  if (event.to_ns < event.from_ns || event.from_ns >= range.to_ns) return;
  if (is_instant ? event.from_ns < range.from_ns : event.to_ns <= range.from_ns) return;
  ++events_;
  busy_ns_ =
      AddSaturated(busy_ns_, std::min(event.to_ns, range.to_ns) - std::max(event.from_ns, range.from_ns));

  row_number = std::clamp(row_number, 0, kMaxRows - 1);
  if (row_number >= rows()) rows_.resize(static_cast<size_t>(row_number) + 1);
  Row& row = rows_[static_cast<size_t>(row_number)];
  const int64_t length_ns = event.to_ns - event.from_ns;
  if (length_ns >= resolution_ns && row.long_events < kMaxEventsPerCell * cells_) {
    ++row.long_events;
    ++slices_;
    if (counts_only_) return;
    row.events.push_back({event.from_ns, length_ns, row_number, name, 1, length_ns});
    bytes_ += sizeof(Slice);
    return;
  }
  const size_t place = grid_.PlaceOf(event.from_ns);
  if (counts_only_) {
    if (row.has_cell.empty()) row.has_cell.resize(cells_);
    slices_ += row.has_cell[place] ? 0 : 1;
    row.has_cell[place] = true;
    return;
  }
  if (row.cell_at.empty()) {
    row.cell_at.resize(cells_);
    bytes_ += cells_ * sizeof(uint32_t);
  }
  uint32_t& cell = row.cell_at[place];
  if (cell == 0) {
    row.cells.push_back({.span = event, .names = {}});
    cell = static_cast<uint32_t>(row.cells.size());
    ++slices_;
    bytes_ += sizeof(Cell);
  }
  AddTo(row.cells[cell - 1], event, name);
}

void SliceSums::CountOnly() {
  if (std::exchange(counts_only_, true)) return;
  for (Row& row : rows_) {
    std::vector<bool> has_cell(row.cell_at.size());
    for (size_t i = 0; i < has_cell.size(); ++i) has_cell[i] = row.cell_at[i] != 0;
    row = {.long_events = row.long_events,
           .events = {},
           .cell_at = {},
           .cells = {},
           .has_cell = std::move(has_cell)};
  }
  bytes_ = 0;
}

void SliceSums::AddTo(Cell& cell, const TimeRange& event, int32_t name) {
  cell.span.from_ns = std::min(cell.span.from_ns, event.from_ns);
  cell.span.to_ns = std::max(cell.span.to_ns, event.to_ns);
  const int64_t length_ns = event.to_ns - event.from_ns;
  ++cell.count;
  cell.busy_ns = AddSaturated(cell.busy_ns, length_ns);
  const auto known = std::ranges::find(cell.names, name, &std::pair<int32_t, int64_t>::first);
  if (known != cell.names.end()) {
    known->second = AddSaturated(known->second, length_ns);
  } else if (cell.names.size() < kMaxNames) {
    cell.names.emplace_back(name, length_ns);
    bytes_ += sizeof(cell.names.front());
  }
}

std::vector<Slice> SliceSums::Take() {
  std::vector<Slice> slices;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    slices.insert(slices.end(), row.events.begin(), row.events.end());
    for (const Cell& cell : row.cells) {
      // Of equal ones the lower, so that the same events give the same slice in any order.
      const auto most = std::ranges::max_element(
          cell.names, {}, [](const auto& of) { return std::tuple(of.second, -of.first); });
      const int64_t length_ns = cell.span.to_ns - cell.span.from_ns;
      slices.push_back({cell.span.from_ns, length_ns, static_cast<int32_t>(i), most->first, cell.count,
                        std::min(cell.busy_ns, length_ns)});
    }
    row = {};
  }
  std::ranges::sort(slices, {}, [](const Slice& slice) {
    return std::tuple(slice.row, slice.start_ns, slice.length_ns, slice.name);
  });
  return slices;
}

}  // namespace gpusonde::store
