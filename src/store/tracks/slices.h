// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time_range.h"

namespace gpusonde::store {

// Where a time is drawn: in columns of one resolution.
struct Grid {
  TimeRange range;            // not empty
  int64_t resolution_ns = 1;  // a power of two

  // Requires 1 ≤ columns. The resolution is the smallest power of two with which the range has no more
  // columns, at most 2^62.
  static Grid Of(const TimeRange& range, int columns);

  // The cells: one resolution each, aligned to multiples of it since the epoch. The first lies before the
  // range, because a short event that reaches into the range starts at most one cell before it.
  int64_t CellOf(int64_t time_ns) const { return time_ns & ~(resolution_ns - 1); }  // its start
  int64_t first_ns() const { return CellOf(range.from_ns) - resolution_ns; }
  size_t cells() const { return PlaceOf(range.to_ns) + 1; }
  // The index of a time's cell; that of the first cell for earlier times. From the first cell's start to a
  // time can be more than 63 bits.
  size_t PlaceOf(int64_t time_ns) const {
    const int64_t first = first_ns();
    return (static_cast<uint64_t>(std::max(time_ns, first)) - static_cast<uint64_t>(first)) /
           static_cast<uint64_t>(resolution_ns);
  }
};

// What is drawn as one rectangle: an event, or short ones that follow each other.
struct Slice {
  int64_t start_ns = 0;
  int64_t length_ns = 0;
  int32_t row = 0;
  int32_t name = 0;     // of several events, that with the most time
  int64_t count = 1;    // of events
  int64_t busy_ns = 0;  // time in which they ran, at most length_ns
};

// The slices of a track. An event that is at least one resolution long is a slice; shorter ones are summed by
// row and cell of the grid, by an event's start, so that a track has no more slices than can be drawn,
// whatever happens in it. Not thread-safe.
class SliceSums {
 public:
  static constexpr int32_t kMaxRows = 64;
  // Names of a cell that are told apart; the time of others names nothing.
  static constexpr size_t kMaxNames = 32;

  explicit SliceSums(const Grid& grid);

  // Events that don't touch the range are ignored; those of rows beyond the last are added to it.
  void Add(const TimeRange& event, int32_t row, int32_t name);

  int32_t rows() const { return static_cast<int32_t>(rows_.size()); }
  int64_t events() const { return events_; }
  int64_t busy_ns() const { return busy_ns_; }  // sum of durations within the range
  size_t slices() const { return slices_; }
  size_t bytes() const { return bytes_; }  // that slices take, about

  // Forgets the slices, and only counts them from now on: a bit of memory for each.
  void CountOnly();
  // By row and start; empty where they were only counted. Nothing may be added afterwards.
  std::vector<Slice> Take();

 private:
  struct Cell {
    TimeRange span;
    int64_t count = 0;
    int64_t busy_ns = 0;
    std::vector<std::pair<int32_t, int64_t>> names;  // with the time of each
  };
  struct Row {
    size_t long_events = 0;
    std::vector<Slice> events;      // the long ones
    std::vector<uint32_t> cell_at;  // an index into `cells` and 1, by place in the grid; 0: none
    std::vector<Cell> cells;
    std::vector<bool> has_cell;  // instead of the other vectors where cells are only counted
  };
  void AddTo(Cell& cell, const TimeRange& event, int32_t name);

  Grid grid_;
  size_t cells_;
  std::vector<Row> rows_;
  bool counts_only_ = false;
  size_t slices_ = 0;
  size_t bytes_ = 0;
  int64_t events_ = 0;
  int64_t busy_ns_ = 0;
};

}  // namespace gpusonde::store
