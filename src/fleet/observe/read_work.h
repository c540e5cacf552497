// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "fleet/characteristics.h"
#include "fleet/observe/observation_builder.h"
#include "fleet/observe/windows.h"
#include "store/store.h"

// What observations read of a store. Errors: those of Store::Query.
namespace gpusonde::fleet {

// How many kernels, copies and sets run on each device in the range; devices without any are absent. Packs of
// kernels count as a whole, though they may also have some outside of the range, in the same second.
Result<std::map<Id128, int64_t>> CountWork(store::Store& store, const TimeRange& range);

// The windows of the range in which each device's work is read: the whole range if there are at most
// size.operations, else those of a sample. `counts` as CountWork's.
Result<std::map<Id128, std::vector<TimeRange>>> ChooseWindows(store::Store& store,
                                                              const std::map<Id128, int64_t>& counts,
                                                              const TimeRange& range, const SampleSize& size);

// Adds a device's work that starts in these windows, at most `limit` operations of each, the first ones; of
// the range's begin also what runs then already, if a window begins with it.
Status ReadWindows(store::Store& store, Id128 device, const TimeRange& range,
                   std::span<const TimeRange> windows, int64_t limit, ObservationBuilder& builder);

// Each device's readings of hardware counters, a sample of them if there are many.
Result<std::map<Id128, std::vector<GpuWork::Activity>>> ReadActivity(store::Store& store,
                                                                     const TimeRange& range);

}  // namespace gpusonde::fleet
