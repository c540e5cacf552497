// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/windows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/time.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kLatestNs = std::numeric_limits<int64_t>::max() - 2 * kNanosPerDay;

// The whole windows of the range that are summed; empty when from_ns ≥ to_ns.
TimeRange WholeWindows(const WindowLevel& level, const TimeRange& range, const TimeRange& summed) {
  const int64_t from_ns = std::max(range.from_ns, summed.from_ns);
  const int64_t start_ns = WindowStart(level, from_ns);
  return {start_ns < from_ns ? start_ns + level.length_ns : start_ns,
          WindowStart(level, std::min(range.to_ns, summed.to_ns))};
}

}  // namespace

int64_t WindowStart(const WindowLevel& level, int64_t time_ns) {
  const int64_t within = std::clamp<int64_t>(time_ns, 0, kLatestNs);
  return within - within % level.length_ns;
}

std::vector<TimePiece> PiecesOf(const TimeRange& range, const TimeRange& summed,
                                std::span<const WindowLevel> levels) {
  std::vector<TimePiece> pieces = {{range, std::nullopt}};
  for (const WindowLevel& level : levels) {
    std::vector<TimePiece> finer;
    for (const TimePiece& piece : pieces) {
      const TimeRange whole = WholeWindows(level, piece.range, summed);
      if (piece.level.has_value() || whole.from_ns >= whole.to_ns) {
        finer.push_back(piece);
        continue;
      }
      finer.push_back({{piece.range.from_ns, whole.from_ns}, std::nullopt});
      finer.push_back({whole, level});
      finer.push_back({{whole.to_ns, piece.range.to_ns}, std::nullopt});
    }
    pieces = std::move(finer);
  }
  std::erase_if(pieces, [](const TimePiece& piece) { return piece.range.from_ns >= piece.range.to_ns; });
  return pieces;
}

void Widen(const model::Batch& batch, std::string_view name, std::optional<TimeRange>& times) {
  const auto column = std::ranges::find(batch.columns, name, &model::ColumnData::name);
  if (column != batch.columns.end() &&
      (column->type != model::ColumnType::kInt64 || column->values.size() / sizeof(int64_t) < batch.rows))
    return;
  for (size_t row = 0; row < batch.rows; ++row) {
    int64_t time_ns = 0;
    if (column != batch.columns.end())
      std::memcpy(&time_ns, column->values.data() + row * sizeof time_ns, sizeof time_ns);
    if (!times.has_value()) times = {time_ns, time_ns};
    times->from_ns = std::min(times->from_ns, time_ns);
    times->to_ns = std::max(times->to_ns, time_ns);
  }
}

}  // namespace gpusonde::store
