// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "store/store.h"

// Windows of time, over which rows are summed: roll-ups give the same answers as the rows, only faster. A
// query over a week reads the sums of its days, then of the hours at its ends, and rows only where its ends
// lie within an hour.
namespace gpusonde::store {

// Windows of one length, which start at its multiples.
struct WindowLevel {
  int64_t length_ns = 0;
  bool by_stack = false;  // else all stacks of a thread together, for queries about threads
};

// A part of a query's time range, and where it is read: in windows of a level, or in rows.
struct TimePiece {
  TimeRange range;
  std::optional<WindowLevel> level;
};

// Start of the window that contains the time, clamped to what windows may cover: from the epoch on, with a
// day left for arithmetic at the end of the range.
int64_t WindowStart(const WindowLevel& level, int64_t time_ns);

// Splits the range into windows of these levels (longest first), the longest that fit into the time that is
// summed; the rest is read in rows.
std::vector<TimePiece> PiecesOf(const TimeRange& range, const TimeRange& summed,
                                std::span<const WindowLevel> levels);

// Widens `times` (inclusive) by a batch's column of times; a column that is missing is of zeros, as the store
// fills it. One of another type, or with fewer values than rows, has no times: the store refuses such a
// batch, but may ask for its times first.
void Widen(const model::Batch& batch, std::string_view name, std::optional<TimeRange>& times);

}  // namespace gpusonde::store
