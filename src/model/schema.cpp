// SPDX-License-Identifier: Apache-2.0
#include "model/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/batch.h"
#include "model/tables/allocations.h"
#include "model/tables/api_calls.h"
#include "model/tables/batches.h"
#include "model/tables/binaries.h"
#include "model/tables/collectives.h"
#include "model/tables/communicators.h"
#include "model/tables/containers.h"
#include "model/tables/device_windows.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/evidence.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/graph_nodes.h"
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
#include "model/tables/pod_devices.h"
#include "model/tables/pod_labels.h"
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
#include "model/tables/usual_steps.h"
#include "model/tables/warnings.h"

namespace gpusonde::model {

std::span<const TableInfo> AllTables() {
  static constexpr std::array kTables = {
      kAllocations.info(),    kApiCalls.info(),      kBatches.info(),    kBinaries.info(),
      kCollectives.info(),    kCommunicators.info(), kContainers.info(), kDeviceWindows.info(),
      kDevices.info(),        kDrops.info(),         kEvidence.info(),   kFunctions.info(),
      kGpuSessions.info(),    kGraphNodes.info(),    kIncidents.info(),  kKernelMetrics.info(),
      kKernelPacks.info(),    kKernelWindows.info(), kKernels.info(),    kLocations.info(),
      kMappings.info(),       kMemcpys.info(),       kMemsets.info(),    kMeta.info(),
      kMetrics.info(),        kPodDevices.info(),    kPodLabels.info(),  kProcesses.info(),
      kProfileWindows.info(), kRanges.info(),        kSamples.info(),    kSignals.info(),
      kSources.info(),        kStacks.info(),        kSteps.info(),      kSyncs.info(),
      kThreads.info(),        kUsualSteps.info(),    kWarnings.info(),
  };
  return kTables;
}

const TableInfo* FindTable(std::string_view name) {
  for (const TableInfo& table : AllTables())
    if (table.name == name) return &table;
  return nullptr;
}

Status CheckAgainstSchema(const Batch& batch) {
  const TableInfo* table = FindTable(batch.table);
  if (table == nullptr) return {};
  for (const ColumnData& column : batch.columns) {
    const auto known = std::ranges::find(table->columns, column.name, &ColumnInfo::name);
    if (known == table->columns.end()) continue;
    if (known->type != column.type)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}.{} is of another type", batch.table, column.name));
    if (!known->nullable && std::ranges::find(column.valid, 0) != column.valid.end())
      return Fail(ErrorCode::kCorrupt, fmt::format("{}.{} is null in a row", batch.table, column.name));
  }
  return {};
}

}  // namespace gpusonde::model
