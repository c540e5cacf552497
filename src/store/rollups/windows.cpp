// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "model/tables/samples.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kLatestNs = std::numeric_limits<int64_t>::max() - 2 * kDay.length_ns;

// The whole windows of the range that end at or before `end_ns`; empty when from_ns ≥ to_ns.
TimeRange WholeWindows(const WindowLevel& level, const TimeRange& range, int64_t end_ns) {
  const int64_t start = WindowStart(level, range.from_ns);
  return {start < range.from_ns ? start + level.length_ns : start,
          WindowStart(level, std::min(range.to_ns, end_ns))};
}

// The windows of one level from `source`, rows of time, state, count, weight_ns and variance_ns2.
Status SumLevel(duckdb::Connection& connection, std::string_view tables, const WindowLevel& level,
                const TimeRange& range, std::string_view source) {
  TRY(
      connection.Run(fmt::format("DELETE FROM {}.profile_windows WHERE start_ns >= {} AND start_ns < {} "
                                 "AND end_ns - start_ns = {}",
                                 tables, range.from_ns, range.to_ns, level.length_ns)));
  return connection.Run(fmt::format(
      "INSERT INTO {0}.profile_windows BY NAME "
      "SELECT time_ns - time_ns % {1} AS start_ns, time_ns - time_ns % {1} + {1} AS end_ns, process, tid, "
      "{2} "
      "state, sum(count)::BIGINT AS count, sum(weight_ns)::BIGINT AS weight_ns, "
      "sum(variance_ns2) AS variance_ns2 "
      "FROM ({3}) WHERE time_ns >= {4} AND time_ns < {5} GROUP BY ALL ORDER BY start_ns",
      tables, level.length_ns, level.by_stack ? "stack," : "", source, range.from_ns, range.to_ns));
}

}  // namespace

int64_t WindowStart(const WindowLevel& level, int64_t time_ns) {
  const int64_t within = std::clamp<int64_t>(time_ns, 0, kLatestNs);
  return within - within % level.length_ns;
}

std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns, bool by_stack) {
  constexpr std::array kByStack = {kDay, kHour};
  constexpr std::array kByThread = {kFiveMinutes};
  return by_stack ? PiecesOf(range, windows_end_ns, kByStack) : PiecesOf(range, windows_end_ns, kByThread);
}

std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns,
                                std::span<const WindowLevel> levels) {
  std::vector<TimePiece> pieces = {{range, std::nullopt}};
  for (const WindowLevel& level : levels) {
    std::vector<TimePiece> finer;
    for (const TimePiece& piece : pieces) {
      const TimeRange whole = WholeWindows(level, piece.range, windows_end_ns);
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

std::optional<TimeRange> SampleTimes(std::span<const model::Batch> batches) {
  std::optional<TimeRange> times;
  for (const model::Batch& batch : batches) {
    if (batch.table != model::kSamples.info().name) continue;
    const auto column = std::ranges::find(batch.columns, "time_ns", &model::ColumnData::name);
    for (size_t row = 0; row < batch.rows; ++row) {
      int64_t time_ns = 0;  // what the store puts in the place of a column that is missing
      if (column != batch.columns.end())
        std::memcpy(&time_ns, column->values.data() + row * sizeof time_ns, sizeof time_ns);
      if (!times.has_value()) times = {time_ns, time_ns};
      times->from_ns = std::min(times->from_ns, time_ns);
      times->to_ns = std::max(times->to_ns, time_ns);
    }
  }
  return times;
}

Status SumWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                  int64_t windows_end_ns) {
  const std::string tables = duckdb::QuoteName(catalog) + ".main";
  const std::string samples = fmt::format(
      "SELECT time_ns, process, tid, stack, state, 1 AS count, weight_ns, {} AS variance_ns2 FROM {}.samples",
      kSampleVariance, tables);
  const std::string hours = fmt::format(
      "SELECT start_ns AS time_ns, process, tid, stack, state, count, weight_ns, variance_ns2 "
      "FROM {}.profile_windows "
      "WHERE end_ns - start_ns = {}",
      tables, kHour.length_ns);
  for (const WindowLevel& level : {kFiveMinutes, kHour, kDay}) {
    const int64_t last = WindowStart(level, std::max(range.from_ns, range.to_ns - 1));
    const TimeRange touched{WindowStart(level, range.from_ns),
                            std::min(last + level.length_ns, WindowStart(level, windows_end_ns))};
    if (touched.from_ns < touched.to_ns)
      TRY(SumLevel(connection, tables, level, touched, level.length_ns == kDay.length_ns ? hours : samples));
  }
  return {};
}

}  // namespace gpusonde::store
