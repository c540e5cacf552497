// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/device_account.h"
#include "store/queries/usage_query.h"
#include "store/store.h"

// Who held GPUs: a step of ReadGpuUsage.
namespace gpusonde::store {

// A device, who holds it, and its account.
struct HeldDevice {
  std::vector<size_t> rows;  // of GpuUsage::holders
  std::vector<model::DeviceAccount::Holder> times;
  std::optional<model::DeviceAccount> account;
};
using HeldDevices = std::map<Id128, HeldDevice>;

// Adds what was seen from a time on, which a minute begins with. Errors: those of Store::Query.
Status ReadSightings(Store& store, int64_t from_ns, Sightings& seen);

// Fills the holders of the usage's time range, without their use: the processes that were seen, and the
// containers of pods that had a device allocated while no process of the pod held it. Returns the times of
// each. Errors: those of Store::Query.
Result<HeldDevices> ReadHolders(Store& store, const Sightings& seen, GpuUsage& usage);

}  // namespace gpusonde::store
