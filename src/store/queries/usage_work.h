// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/result.h"
#include "store/queries/usage_holders.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/windows.h"
#include "store/store.h"

namespace gpusonde::store {

// The levels of roll-ups that usage is read from.
inline constexpr std::array kUsageLevels = {kMinuteOfWork};
static_assert(kMinuteOfWork.length_ns == kMinuteOfBusy.length_ns);

// Adds the work in the usage's time range to the accounts of the devices: minutes in which one process alone
// held and used a device from roll-ups, others in rows. Errors: those of Store::Query.
Status AddWork(Store& store, const GpuUsage& usage, HeldDevices& holders);

}  // namespace gpusonde::store
