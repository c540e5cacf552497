// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "fleet/observe/observation_builder.h"
#include "fleet/observe/windows.h"
#include "store/store.h"

// What observations read of a store. Errors: those of Store::Query.
namespace gpusonde::fleet {

// How many kernels, copies and sets run on each device in the range; devices without any are absent. Packs of
// kernels count as a whole, though they may also have some outside of the range, in the same second.
Result<std::map<Id128, int64_t>> CountWork(store::Store& store, const TimeRange& range);

// The windows of the range in which a device's work is read: the whole range if there are at most
// size.operations, else those of a sample. `total` as CountWork counts.
Result<std::vector<TimeRange>> WindowsOf(store::Store& store, Id128 device, const TimeRange& range,
                                         int64_t total, const SampleSize& size);

// Adds a device's work that starts in the window, at most `limit` operations, the first ones; in a window
// that begins with the range also what runs then already.
Status ReadWindow(store::Store& store, Id128 device, const TimeRange& range, const TimeRange& window,
                  int64_t limit, ObservationBuilder& builder);

// Adds the device's readings of hardware counters, a sample of them if there are many.
Status ReadActivity(store::Store& store, Id128 device, const TimeRange& range, ObservationBuilder& builder);

}  // namespace gpusonde::fleet
