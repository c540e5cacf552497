// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/state_sums.h"

#include <algorithm>
#include <utility>

#include "base/saturated.h"

namespace gpusonde::store {

void StateSums::Add(const TimeRange& bucket, int32_t state, int64_t time_ns) {
  const auto& [range, resolution_ns] = grid_;
  const int64_t bucket_ns = bucket.to_ns - bucket.from_ns;
  if (bucket_ns <= 0 || time_ns <= 0 || bucket.to_ns <= range.from_ns) return;
  if (time_ns > bucket_ns) {
    AddInterval({bucket.to_ns - time_ns, bucket.to_ns}, bucket_ns, state);
    return;
  }
  if (bucket.from_ns >= range.to_ns) return;
  if (bucket_ns >= resolution_ns) {
    AddTo({bucket.from_ns, bucket_ns, state}, time_ns);
    return;
  }
  // A bucket shorter than a cell lies in one or two; the time is divided evenly.
  const int64_t cell_ns = grid_.CellOf(bucket.from_ns);
  const int64_t beyond_ns = std::max<int64_t>(bucket.to_ns - cell_ns - resolution_ns, 0);
  const auto beyond = static_cast<int64_t>(static_cast<double>(time_ns) * static_cast<double>(beyond_ns) /
                                           static_cast<double>(bucket_ns));
  AddTo({cell_ns, resolution_ns, state}, time_ns - beyond);
  if (beyond > 0) AddTo({cell_ns + resolution_ns, resolution_ns, state}, beyond);
}

// Adds a state that lasted from the first to the last moment of an interval, which ends with a bucket.
void StateSums::AddInterval(const TimeRange& interval, int64_t bucket_ns, int32_t state) {
  const auto& [range, resolution_ns] = grid_;
  int64_t to_ns = interval.to_ns;
  if (to_ns > range.to_ns) to_ns -= (to_ns - range.to_ns) / bucket_ns * bucket_ns;
  const int64_t from_ns = std::max(interval.from_ns, range.from_ns);
  const int64_t length_ns = std::max(bucket_ns, resolution_ns);
  while (to_ns > from_ns) {
    // The last cell or bucket of what is left.
    const int64_t start_ns = bucket_ns >= resolution_ns ? to_ns - bucket_ns : grid_.CellOf(to_ns - 1);
    AddTo({start_ns, length_ns, state}, to_ns - std::max(start_ns, interval.from_ns));
    to_ns = start_ns;
  }
}

std::optional<size_t> StateSums::PlaceOf(const Cell& cell) {
  const auto known = std::ranges::find(states_, cell.state);
  const auto number = static_cast<size_t>(known - states_.begin());
  if (number == kMaxStates) return std::nullopt;
  if (known == states_.end()) states_.push_back(cell.state);
  // The last cell may have time of a bucket that reaches beyond it.
  const size_t column = std::min(grid_.PlaceOf(cell.start_ns), grid_.cells());
  return column * kMaxStates + number;
}

void StateSums::AddTo(const Cell& cell, int64_t time_ns) {
  if (counts_only_) {
    const std::optional<size_t> place = PlaceOf(cell);
    if (!place.has_value() || has_slice_[*place]) return;
    has_slice_[*place] = true;
    ++slices_;
    return;
  }
  const auto known = times_ns_.find(cell);
  if (known != times_ns_.end()) {
    known->second = AddSaturated(known->second, time_ns);
  } else if (PlaceOf(cell).has_value() && slices_ < kMaxPerCell * kMaxStates * (grid_.cells() + 1)) {
    times_ns_.emplace(cell, time_ns);
    ++slices_;
  }
}

void StateSums::CountOnly() {
  if (std::exchange(counts_only_, true)) return;
  has_slice_.resize((grid_.cells() + 1) * kMaxStates);
  slices_ = 0;
  for (const auto& [cell, time_ns] : std::exchange(times_ns_, {})) AddTo(cell, time_ns);
}

std::vector<Slice> StateSums::Take() {
  std::vector<Slice> slices;
  slices.reserve(times_ns_.size());
  for (const auto& [cell, time_ns] : std::exchange(times_ns_, {}))
    slices.push_back({cell.start_ns, cell.length_ns, 0, cell.state, 1, std::min(time_ns, cell.length_ns)});
  return slices;
}

}  // namespace gpusonde::store
