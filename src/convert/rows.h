// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/result.h"
#include "model/batch.h"
#include "model/tables/allocations.h"
#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernel_metrics.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/processes.h"
#include "model/tables/ranges.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/syncs.h"
#include "model/tables/threads.h"
#include "store/recordings/recording.h"

namespace gpusonde::convert {

// The rows that a trace becomes, passed on in batches. Not thread-safe.
class Rows {
 public:
  explicit Rows(store::BatchSink sink) : sink_(std::move(sink)) {}

  template <class Table>
  using Builder = model::BatchBuilder<Table>;
  Builder<decltype(model::kSources)> sources{model::kSources};
  Builder<decltype(model::kProcesses)> processes{model::kProcesses};
  Builder<decltype(model::kThreads)> threads{model::kThreads};
  Builder<decltype(model::kDevices)> devices{model::kDevices};
  Builder<decltype(model::kGpuSessions)> gpu_sessions{model::kGpuSessions};
  Builder<decltype(model::kFunctions)> functions{model::kFunctions};
  Builder<decltype(model::kLocations)> locations{model::kLocations};
  Builder<decltype(model::kStacks)> stacks{model::kStacks};
  Builder<decltype(model::kAllocations)> allocations{model::kAllocations};
  Builder<decltype(model::kApiCalls)> api_calls{model::kApiCalls};
  Builder<decltype(model::kKernels)> kernels{model::kKernels};
  Builder<decltype(model::kKernelMetrics)> kernel_metrics{model::kKernelMetrics};
  Builder<decltype(model::kMemcpys)> memcpys{model::kMemcpys};
  Builder<decltype(model::kMemsets)> memsets{model::kMemsets};
  Builder<decltype(model::kSyncs)> syncs{model::kSyncs};
  Builder<decltype(model::kRanges)> ranges{model::kRanges};
  Builder<decltype(model::kDrops)> drops{model::kDrops};

  // Passes on the tables that have many rows. Errors: those of the sink.
  Status PassFull() { return Pass(kFullRows); }
  Status PassAll() { return Pass(1); }

 private:
  // A few of DuckDB's vectors of 2,048 rows.
  static constexpr size_t kFullRows = 8'192;

  Status Pass(size_t min_rows) {
    Status passed;
    const auto pass = [&](auto&... builders) {
      ((passed = passed.has_value() && builders.rows() >= min_rows ? sink_(builders.Take()) : passed), ...);
    };
    pass(sources, processes, threads, devices, gpu_sessions, functions, locations, stacks, allocations,
         api_calls, kernels, kernel_metrics, memcpys, memsets, syncs, ranges, drops);
    return passed;
  }

  store::BatchSink sink_;
};

}  // namespace gpusonde::convert
