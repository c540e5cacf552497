// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "store/duckdb/connection.h"
#include "store/sql/time_range.h"

// Roll-ups of samples over windows of time (table profile_windows). They give the same answers as the
// samples, only faster: a query over a week reads the sums of its days, then of the hours at its ends, and
// samples only where its ends lie within an hour.
namespace gpusonde::store {

// The variance of a sample's weight_ns, as an estimate of the time that threads waited: a wait that was
// sampled with probability p = duration / weight contributes (1 - p) / p² · duration² (Horvitz and Thompson
// 1952). Double: a file may hold any numbers.
inline constexpr std::string_view kSampleVariance =
    "coalesce(weight_ns::DOUBLE * greatest(weight_ns::DOUBLE - duration_ns::DOUBLE, 0), 0)";

// Windows of one length, which start at its multiples.
struct WindowLevel {
  int64_t length_ns = 0;
  bool by_stack = false;  // else all stacks of a thread together, for queries about threads
};
inline constexpr WindowLevel kFiveMinutes{300 * kNanosPerSecond, false};
inline constexpr WindowLevel kHour{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kDay{86'400 * kNanosPerSecond, true};

// A part of a query's time range, and where it is read: in windows of a level, or in samples.
struct TimePiece {
  TimeRange range;
  std::optional<WindowLevel> level;
};

// Start of the window that contains the time, clamped to what windows may cover: from the epoch on, with a
// day left for arithmetic at the end of the range.
int64_t WindowStart(const WindowLevel& level, int64_t time_ns);

// Splits the range into windows of these levels (longest first), the longest that fit before
// `windows_end_ns`; the rest is read in samples.
std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns,
                                std::span<const WindowLevel> levels);

// The same with the levels of CPU time.
std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns, bool by_stack);

// First and last time of the samples in the batches, inclusive; nothing if there are none.
std::optional<TimeRange> SampleTimes(std::span<const model::Batch> batches);

// Recomputes the windows of every length that intersect the range and end at or before `windows_end_ns`, from
// the samples of the same catalog.
Status SumWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                  int64_t windows_end_ns);

}  // namespace gpusonde::store
