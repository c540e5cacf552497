// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "store/duckdb/connection.h"
#include "store/rollups/windows.h"
#include "store/sql/time_range.h"
#include "store/store.h"

// Roll-ups of GPU work over windows of time, like store/rollups/windows.h of samples: work by its start
// (table kernel_windows) and busy time of devices (device_windows).
namespace gpusonde::store {

inline constexpr WindowLevel kHourOfWork{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kMinuteOfWork{60 * kNanosPerSecond, true};

// A strip has 600 buckets: of minutes over a day, of seconds over an hour.
inline constexpr WindowLevel kMinuteOfBusy{60 * kNanosPerSecond};
inline constexpr WindowLevel kSecondOfBusy{kNanosPerSecond};
inline constexpr WindowLevel kTenthOfBusy{kNanosPerSecond / 10};

// Splits the range into windows of these levels (longest first) where the store has them; the rest is read in
// rows.
std::vector<TimePiece> PiecesOfWork(const Store& store, const TimeRange& range,
                                    std::span<const WindowLevel> levels);

// Time intervals by device.
using DeviceTimes = std::map<Id128, std::vector<TimeRange>>;

// Adds rows of device, start_ns and end_ns, in any order, clipped to the range.
Status AddTimes(Rows& rows, const TimeRange& range, DeviceTimes& work);

// Sorts and merges the intervals of each device.
void MergeTimes(DeviceTimes& work);

// The union of the rows' intervals within the range. Rows as for AddTimes; all are held in memory.
Result<DeviceTimes> ReadBusyTimes(Rows& rows, const TimeRange& range);

// First and last start of work or launches in the batches, inclusive; nothing if there are none.
std::optional<TimeRange> WorkTimes(std::span<const model::Batch> batches);

// Recomputes the windows of every length that intersect the range and end at or before `windows_end_ns`, from
// the committed work of the same catalog. Not to be called in a transaction of the connection. Work that runs
// for more than ten minutes counts as busy for the first ten: timestamps come from untrusted programs, and
// one row must not cost more than that.
Status SumGpuWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                     int64_t windows_end_ns);

// Deletes the windows that end after this time, in the connection's transaction.
Status DeleteGpuWindows(duckdb::Connection& connection, std::string_view catalog, int64_t after_ns);

}  // namespace gpusonde::store
