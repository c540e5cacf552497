// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/time_range.h"
#include "store/tracks/slices.h"

namespace gpusonde::store {

// The time of a thread in each of its states, by bucket or, where buckets are shorter than that, by cell of
// the grid, in which times add up. Not thread-safe.
class StateSums {
 public:
  static constexpr size_t kMaxStates = 8;
  // Buckets of a state that begin in a cell. Those that follow each other are at most one; in a damaged file
  // they may overlap, and then the rest is left out.
  static constexpr size_t kMaxPerCell = 4;

  explicit StateSums(const Grid& grid) : grid_(grid) {}

  // Ignores time outside of the range, and states beyond the first kMaxStates. Time that is longer than its
  // bucket began before it.
  void Add(const TimeRange& bucket, int32_t state, int64_t time_ns);

  // As those of SliceSums. Slices of one bucket or cell share a start and a length; their name is the state,
  // and busy_ns the time in it.
  size_t slices() const { return slices_; }
  size_t bytes() const { return times_ns_.size() * kBytesPerSlice; }
  void CountOnly();
  std::vector<Slice> Take();

 private:
  // A node of the map: key, value, and what it needs itself.
  static constexpr size_t kBytesPerSlice = 80;

  struct Cell {
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    int32_t state = 0;
    auto operator<=>(const Cell&) const = default;
  };
  void AddInterval(const TimeRange& interval, int64_t bucket_ns, int32_t state);
  void AddTo(const Cell& cell, int64_t time_ns);
  // The place of a cell in has_slice_; none for one of too many states.
  std::optional<size_t> PlaceOf(const Cell& cell);

  Grid grid_;
  std::map<Cell, int64_t> times_ns_;
  std::vector<int32_t> states_;
  std::vector<bool>
      has_slice_;  // by cell of the grid and state; instead of times where they are only counted
  bool counts_only_ = false;
  size_t slices_ = 0;
};

}  // namespace gpusonde::store
