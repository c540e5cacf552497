// SPDX-License-Identifier: Apache-2.0
#include "model/schema.h"

#include <array>

#include "model/tables/allocations.h"
#include "model/tables/api_calls.h"
#include "model/tables/batches.h"
#include "model/tables/binaries.h"
#include "model/tables/device_windows.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/evidence.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/graph_nodes.h"
#include "model/tables/histograms.h"
#include "model/tables/incidents.h"
#include "model/tables/kernel_metrics.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/mappings.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/meta.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/profile_windows.h"
#include "model/tables/ranges.h"
#include "model/tables/samples.h"
#include "model/tables/signals.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/steps.h"
#include "model/tables/syncs.h"
#include "model/tables/threads.h"
#include "model/tables/warnings.h"

namespace gpusonde::model {

std::span<const TableInfo> AllTables() {
  static constexpr std::array kTables = {
      kAllocations.info(),    kApiCalls.info(),      kBatches.info(),     kBinaries.info(),
      kDeviceWindows.info(),  kDevices.info(),       kDrops.info(),       kEvidence.info(),
      kFunctions.info(),      kGpuSessions.info(),   kGraphNodes.info(),  kHistograms.info(),
      kIncidents.info(),      kKernelMetrics.info(), kKernelPacks.info(), kKernelWindows.info(),
      kKernels.info(),        kLocations.info(),     kMappings.info(),    kMemcpys.info(),
      kMemsets.info(),        kMeta.info(),          kMetrics.info(),     kProcesses.info(),
      kProfileWindows.info(), kRanges.info(),        kSamples.info(),     kSignals.info(),
      kSources.info(),        kStacks.info(),        kSteps.info(),       kSyncs.info(),
      kThreads.info(),        kWarnings.info(),
  };
  return kTables;
}

const TableInfo* FindTable(std::string_view name) {
  for (const TableInfo& table : AllTables())
    if (table.name == name) return &table;
  return nullptr;
}

}  // namespace gpusonde::model
