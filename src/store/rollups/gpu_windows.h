// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "store/rollups/rollup.h"
#include "store/rollups/windows.h"
#include "store/store.h"

// Roll-ups of GPU work: work by its start (table kernel_windows) and busy time of devices (device_windows).
namespace gpusonde::store {

inline constexpr WindowLevel kHourOfWork{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kMinuteOfWork{60 * kNanosPerSecond, true};

// A strip has 600 buckets: of minutes over a day, of seconds over an hour.
inline constexpr WindowLevel kMinuteOfBusy{60 * kNanosPerSecond};
inline constexpr WindowLevel kSecondOfBusy{kNanosPerSecond};
inline constexpr WindowLevel kTenthOfBusy{kNanosPerSecond / 10};

// Time intervals by device.
using DeviceTimes = std::map<Id128, std::vector<TimeRange>>;

// Adds the intervals of rows in any order, clipped to the range, to where `times_of` says. Their start_ns is
// in column `start`, their end_ns in the next one.
Status AddTimes(Rows& rows, const TimeRange& range, size_t start,
                const std::function<std::vector<TimeRange>*(const Rows& row)>& times_of);

// The same of rows of device, start_ns and end_ns.
Status AddTimes(Rows& rows, const TimeRange& range, DeviceTimes& work);

// Sorts and merges the intervals of each device.
void MergeTimes(DeviceTimes& work);

// The union of the rows' intervals within the range. Rows as for AddTimes; all are held in memory.
Result<DeviceTimes> ReadBusyTimes(Rows& rows, const TimeRange& range);

// Sums the minutes of work by its start, and its busy time. Work that is more than ten minutes late stays in
// its own table only, and sums begin ten minutes before the newest work: timestamps come from untrusted
// programs, and none may cause days to be summed again. For the same reason work that runs for more than ten
// minutes counts as busy for the first ten.
//
// `epoch_now` is the wall clock, which may be stepped.
std::unique_ptr<const RollupTables> WorkRollup(std::function<int64_t()> epoch_now = EpochNow);

}  // namespace gpusonde::store
