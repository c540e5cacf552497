// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/batch.h"
#include "model/tables/api_calls.h"
#include "model/tables/binaries.h"
#include "model/tables/collectives.h"
#include "model/tables/communicators.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/graph_nodes.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/mappings.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/ranges.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/syncs.h"
#include "model/tables/threads.h"

namespace gpusonde::agent {

// The rows of one round by table; everything in this folder appends to it.
struct Rows {
  model::BatchBuilder<decltype(model::kSources)> sources{model::kSources};
  model::BatchBuilder<decltype(model::kProcesses)> processes{model::kProcesses};
  model::BatchBuilder<decltype(model::kThreads)> threads{model::kThreads};
  model::BatchBuilder<decltype(model::kBinaries)> binaries{model::kBinaries};
  model::BatchBuilder<decltype(model::kMappings)> mappings{model::kMappings};
  model::BatchBuilder<decltype(model::kFunctions)> functions{model::kFunctions};
  model::BatchBuilder<decltype(model::kLocations)> locations{model::kLocations};
  model::BatchBuilder<decltype(model::kStacks)> stacks{model::kStacks};
  model::BatchBuilder<decltype(model::kSamples)> samples{model::kSamples};
  model::BatchBuilder<decltype(model::kDevices)> devices{model::kDevices};
  model::BatchBuilder<decltype(model::kGpuSessions)> gpu_sessions{model::kGpuSessions};
  model::BatchBuilder<decltype(model::kApiCalls)> api_calls{model::kApiCalls};
  model::BatchBuilder<decltype(model::kGraphNodes)> graph_nodes{model::kGraphNodes};
  model::BatchBuilder<decltype(model::kKernels)> kernels{model::kKernels};
  model::BatchBuilder<decltype(model::kKernelPacks)> kernel_packs{model::kKernelPacks};
  model::BatchBuilder<decltype(model::kMemcpys)> memcpys{model::kMemcpys};
  model::BatchBuilder<decltype(model::kMemsets)> memsets{model::kMemsets};
  model::BatchBuilder<decltype(model::kSyncs)> syncs{model::kSyncs};
  model::BatchBuilder<decltype(model::kRanges)> ranges{model::kRanges};
  model::BatchBuilder<decltype(model::kCommunicators)> communicators{model::kCommunicators};
  model::BatchBuilder<decltype(model::kCollectives)> collectives{model::kCollectives};
  model::BatchBuilder<decltype(model::kKernelWindows)> kernel_windows{model::kKernelWindows};
  model::BatchBuilder<decltype(model::kMetrics)> metrics{model::kMetrics};
  model::BatchBuilder<decltype(model::kDrops)> drops{model::kDrops};

  // Moves out all tables that have rows, names before what refers to them.
  std::vector<model::Batch> Take();
};

}  // namespace gpusonde::agent
