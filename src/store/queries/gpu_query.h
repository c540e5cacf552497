// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/selection.h"
#include "store/queries/profile_query.h"
#include "store/store.h"

// Queries of the UI, the summary and the exporters about GPU time.
namespace gpusonde::store {

// The GPU time of the selection as a profile: kernels, copies and sets as leaves of kind kGpu, each above the
// CPU stack that launched it. The time of a kernel (per device and process) is exact: the sum of the
// durations of its runs that start in the selection, including runs whose records were lost, for which only
// sums are known. Its division among stacks is estimated from the launches that were sampled
// (model/launch_shares.h); the parts sum to the whole to the nanosecond. Where no launch was sampled, the
// leaf's only caller is `[stack not sampled]`; so is that of a trace's work that none of its launches
// started.
//
// Work of a CUDA graph is attributed, exactly, to the stack that captured its node, below a frame
// `[captured in graph]`; where the capture was not observed, to its launch, below a frame `[graph launch]`.
//
// `tid` selects among sampled launches, `filter` among stacks as displayed. The stream of lost records is
// unknown.
// Errors: those of Store::Query.
Result<model::Profile> ReadGpuProfile(Store& store, const model::Selection& selection);

struct GpuDevice {
  Id128 device;
  int32_t ordinal = 0;
  std::string uuid;
  std::string name;
  bool simulated = false;
  std::optional<Id128> parent = std::nullopt;  // of a MIG instance its GPU
  // Of an imported trace, where another trace's device has the same ordinal: the rank ("rank 1"), or if ranks
  // don't tell them apart, the trace's name.
  std::string trace = {};
};
// All devices, by ordinal, then UUID, so that the MIG instances of a GPU follow it; devices known only from
// their work have an id alone.
Result<std::vector<GpuDevice>> ReadDevices(Store& store);
// The same, with those of `seen` that the store doesn't list behind them, by id.
Result<std::vector<GpuDevice>> ReadDevicesAnd(Store& store, std::vector<Id128> seen);

struct StreamUse {
  int64_t stream = 0;
  int64_t busy_ns = 0;  // sum of durations
};
struct DeviceUse {
  GpuDevice device;
  int64_t kernels = 0;
  int64_t busy_ns = 0;             // with any work at all
  int64_t observed_ns = 0;         // time in which work would have been recorded; at least busy_ns
  int64_t partial_ns = 0;          // of that, while the profiling of another process on it was paused
  int64_t paused_ns = 0;           // beyond observed_ns: while that of all processes on it was paused
  std::vector<StreamUse> streams;  // falling by busy_ns, ties by stream
};
// The use of each device in the selection's time range and process; in the order of ReadDevices.
Result<std::vector<DeviceUse>> ReadDeviceUse(Store& store, const model::Selection& selection);

struct DeviceShare {
  Id128 device;
  int64_t kernels = 0;
  int64_t busy_ns = 0;                  // with any work of the process
  std::optional<int64_t> memory_bytes;  // the last reading; null without one
};
// What GPU profiling costs a process (docs/sampling.md), in per cent of its time.
struct ProfilingOverhead {
  double budget = 0;
  double spent = 0;
  std::optional<double> cost, cost_low, cost_high;  // while profiling is active; null: not known yet
};
struct GpuUser {
  Id128 process;
  int32_t pid = 0;
  std::string name;
  std::string command;
  std::string container;  // as ContainerNames names it; empty: none
  int64_t started_ns = 0;
  std::optional<int64_t> exited_ns;
  int64_t observed_ns = 0;           // time in which its work would have been recorded
  std::vector<DeviceShare> devices;  // by id
  std::optional<ProfilingOverhead> overhead = std::nullopt;  // the last; null without a budget
};
// Processes that ran work on a device in the selection's time range, or held memory of one, by pid. Reads the
// work of each process row by row: meant for minutes, not for days. Errors: those of Store::Query.
Result<std::vector<GpuUser>> ReadGpuUsers(Store& store, const model::Selection& selection);

struct DeviceStrip {
  GpuDevice device;
  Strip strip;  // the busy share, 0…1, of each bucket's observed time; null where nothing was observed
  // How much of each bucket was observed, 0…1. The mean of the values weighted by it is busy_ns / observed_ns
  // of ReadDeviceUse.
  std::vector<double> observed;
  // And how much of it lacks the work of a process on the device whose profiling was paused then: values are
  // lower bounds there.
  std::vector<double> partial;
};
// The strips of all devices that were observed in the selection's time, in the order of ReadDevices.
Result<std::vector<DeviceStrip>> ReadGpuStrips(Store& store, const model::Selection& selection, int buckets);

}  // namespace gpusonde::store
