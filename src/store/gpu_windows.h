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
#include "store/store.h"
#include "store/time_range.h"
#include "store/windows.h"

// GPU work summed over windows, beside its single rows, as store/windows.h does it with samples: what was
// started (table kernel_windows), and how long devices were busy (device_windows).
namespace gpusonde::store {

inline constexpr WindowLevel kHourOfWork{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kMinuteOfWork{60 * kNanosPerSecond, true};

// A strip of a day has 600 buckets of minutes, one of an hour of seconds.
inline constexpr WindowLevel kMinuteOfBusy{60 * kNanosPerSecond};
inline constexpr WindowLevel kSecondOfBusy{kNanosPerSecond};
inline constexpr WindowLevel kTenthOfBusy{kNanosPerSecond / 10};

// The range in windows of these levels, which fall, as far as the store has them; the rest without.
std::vector<TimePiece> PiecesOfWork(const Store& store, const TimeRange& range,
                                    std::span<const WindowLevel> levels);

// Stretches of time by device.
using DeviceTimes = std::map<Id128, std::vector<TimeRange>>;

// Adds rows of device, start_ns and end_ns, in any order, as far as they lie within the range.
Status AddTimes(Rows& rows, const TimeRange& range, DeviceTimes& work);

// Makes stretches rise without overlap.
void MergeTimes(DeviceTimes& work);

// Where any of the work runs within the range, merged. Rows as AddTimes has them; all are held in memory.
Result<DeviceTimes> ReadBusyTimes(Rows& rows, const TimeRange& range);

// First and last time that the batches tell of work or of its launches, both included; nothing when there is
// none.
std::optional<TimeRange> WorkTimes(std::span<const model::Batch> batches);

// Makes the windows of every length that the range touches, and that end at or before `windows_end_ns`, from
// the work in the same catalog anew. In no transaction of the connection: what is committed counts. Work that
// runs for more than ten minutes is busy for the first ten: times are told by other people's programs, and
// one row must not cost more than that.
Status SumGpuWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                     int64_t windows_end_ns);

// Deletes the windows that end after this time, in the connection's transaction.
Status DeleteGpuWindows(duckdb::Connection& connection, std::string_view catalog, int64_t after_ns);

}  // namespace gpusonde::store
