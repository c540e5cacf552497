// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/sql/time_range.h"
#include "store/store.h"

namespace gpusonde::store {

// A signal of the slow workload, or the state of a GPU that it uses, around its incident, in equal buckets.
struct IncidentStrip {
  std::string metric;  // of the catalogue; "step" for how long steps took
  Strip strip;         // ns of a step; of signals ns per ns; of a GPU's state in the metric's unit
  std::optional<int32_t> gpu = std::nullopt;  // ordinal of the GPU whose state it is
};

// Step times and, the most changed first, at most four signals of the process's threads and cgroup whose
// means in `incident` differ from those in the rest of `shown`, and two states of its GPUs whose greatest
// values do. What delays threads is summed with that of the processes it started, without those that use a
// GPU themselves. `tid`: of the loop whose steps they are, as in steps. `devices` are the store's. `buckets`
// ≥ 1 of each strip. Errors: those of Store::Query.
Result<std::vector<IncidentStrip>> ReadIncidentStrips(Store& store, const Id128& process, int32_t tid,
                                                      std::span<const GpuDevice> devices,
                                                      const TimeRange& shown, const TimeRange& incident,
                                                      int buckets);

}  // namespace gpusonde::store
