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
#include "store/time_range.h"

// Samples summed over windows (table profile_windows), beside the samples themselves. They say the same as
// the samples, only sooner: a question about a week reads the sums of its days, then of the hours at its
// ends, and samples only where its ends lie within an hour.
namespace gpusonde::store {

// Windows of one length, which start at its multiples.
struct WindowLevel {
  int64_t length_ns = 0;
  bool by_stack = false;  // else all stacks of a thread together, for those who ask about threads
};
inline constexpr WindowLevel kFiveMinutes{300 * kNanosPerSecond, false};
inline constexpr WindowLevel kHour{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kDay{86'400 * kNanosPerSecond, true};

// A piece of time, and where it is read: in windows, or in samples.
struct TimePiece {
  TimeRange range;
  std::optional<WindowLevel> level;
};

// Start of the window that holds the time, moved into what windows may cover: since the epoch, and with a day
// left for arithmetic at the other end of time.
int64_t WindowStart(const WindowLevel& level, int64_t time_ns);

// The range in as long windows of these levels, which fall, as there are for all time before
// `windows_end_ns`; the rest without.
std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns,
                                std::span<const WindowLevel> levels);

// The same in windows of CPU time.
std::vector<TimePiece> PiecesOf(const TimeRange& range, int64_t windows_end_ns, bool by_stack);

// First and last time of the samples among the batches, both included; nothing when there are none.
std::optional<TimeRange> SampleTimes(std::span<const model::Batch> batches);

// Makes the windows of every length that the range touches, and that end at or before `windows_end_ns`, from
// the samples of the same catalog anew.
Status SumWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                  int64_t windows_end_ns);

}  // namespace gpusonde::store
