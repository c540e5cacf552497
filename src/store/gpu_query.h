// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/selection.h"
#include "store/profile_query.h"
#include "store/store.h"

// The questions that the UI, the summary and the exporters ask about GPU time.
namespace gpusonde::store {

// The GPU time of the selection as a profile: kernels, copies and sets as leaves of kind kGpu, each above the
// CPU stack that launched it. The time of a kernel (a device's, of a process) is exact: the sum of the
// durations of its runs that start in the selection, and of those whose records were lost, of which only sums
// are known. How it divides among stacks is estimated from the launches that were sampled
// (model/launch_shares.h); the parts sum to the whole to the nanosecond. Where no launch was sampled, the
// leaf's only caller is `[stack not sampled]`.
//
// Work of a CUDA graph is under the stack that captured its node, exact, and a frame `[captured in graph]`
// says so; where nobody saw that, under its launch and a frame `[graph launch]`.
//
// `tid` selects among sampled launches; `filter` among stacks as shown. Lost records know no stream.
// Errors: those of Store::Query.
Result<model::Profile> ReadGpuProfile(Store& store, const model::Selection& selection);

struct GpuDevice {
  Id128 device;
  int32_t ordinal = 0;
  std::string uuid;
  std::string name;
  bool simulated = false;
};
// Every device there is, by ordinal, then UUID; also those of which only work is known, by id alone.
Result<std::vector<GpuDevice>> ReadDevices(Store& store);

struct StreamUse {
  int64_t stream = 0;
  int64_t busy_ns = 0;  // sum of durations
};
struct DeviceUse {
  GpuDevice device;
  int64_t kernels = 0;
  int64_t busy_ns = 0;             // with any work at all
  int64_t observed_ns = 0;         // of the selection's time, how much is known of; at least busy_ns
  std::vector<StreamUse> streams;  // falling by busy_ns, ties by stream
};
// What each device did in the selection's time and process; in the order of ReadDevices.
Result<std::vector<DeviceUse>> ReadDeviceUse(Store& store, const model::Selection& selection);

struct DeviceStrip {
  GpuDevice device;
  Strip strip;  // the busy share, 0…1, of each bucket's observed time; nothing where that is none
  // How much of each bucket was observed, 0…1. The mean of the values weighted by it is busy_ns / observed_ns
  // of ReadDeviceUse.
  std::vector<double> observed;
};
// The strips of all devices that were observed in the selection's time, in the order of ReadDevices.
Result<std::vector<DeviceStrip>> ReadGpuStrips(Store& store, const model::Selection& selection, int buckets);

}  // namespace gpusonde::store
