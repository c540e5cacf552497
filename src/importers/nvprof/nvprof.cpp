// SPDX-License-Identifier: Apache-2.0
#include "importers/nvprof/nvprof.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "importers/activities/activity_trace.h"

namespace gpusonde::importers::nvprof {
namespace {

using activities::Kind;
using activities::TableKind;

// A file has one process, so its events don't name it. Kernels are in one of the first two tables: in the
// second if the profiler serialised them. Copies between devices are in MEMCPY2. Calls have numbers, CUPTI's
// callback ids; the file doesn't have their names.
constexpr std::array kNvprofTables = {
    TableKind{Kind::kKernel,
              "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
              {"start", "end", "deviceId", "streamId", "correlationId", "", "name", "", "gridX", "gridY",
               "gridZ", "blockX", "blockY", "blockZ", "contextId", "", "registersPerThread",
               "staticSharedMemory", "dynamicSharedMemory"}},
    TableKind{Kind::kKernel,
              "CUPTI_ACTIVITY_KIND_KERNEL",
              {"start", "end", "deviceId", "streamId", "correlationId", "", "name", "", "gridX", "gridY",
               "gridZ", "blockX", "blockY", "blockZ", "contextId", "", "registersPerThread",
               "staticSharedMemory", "dynamicSharedMemory"}},
    TableKind{Kind::kMemcpy,
              "CUPTI_ACTIVITY_KIND_MEMCPY",
              {"start", "end", "deviceId", "streamId", "correlationId", "", "bytes", "copyKind", "srcKind",
               "dstKind", "", "", "", "", "contextId"}},
    TableKind{Kind::kMemcpy,
              "CUPTI_ACTIVITY_KIND_MEMCPY2",
              {"start", "end", "deviceId", "streamId", "correlationId", "", "bytes", "copyKind", "srcKind",
               "dstKind", "", "", "", "", "contextId"}},
    TableKind{Kind::kMemset,
              "CUPTI_ACTIVITY_KIND_MEMSET",
              {"start", "end", "deviceId", "streamId", "correlationId", "", "bytes", "memoryKind", "", "", "",
               "", "", "", "contextId"}},
    TableKind{Kind::kRuntime,
              "CUPTI_ACTIVITY_KIND_RUNTIME",
              {"start", "end", "", "correlationId", "cbid", "threadId", "", "", "", "", "", "", "", "",
               "returnValue"},
              "runtime call "},
    TableKind{Kind::kRuntime,
              "CUPTI_ACTIVITY_KIND_DRIVER",
              {"start", "end", "", "correlationId", "cbid", "threadId", "", "", "", "", "", "", "", "",
               "returnValue"},
              "driver call "},
    TableKind{Kind::kMarker, "CUPTI_ACTIVITY_KIND_MARKER", {"timestamp", "flags"}},
    TableKind{Kind::kSync,
              "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
              {"start",    "end",           "", "",          "",    "", "", "", "", "", "", "", "", "", "",
               "streamId", "correlationId", "", "contextId", "type"}},
};

constexpr std::array kNvprofKernelTimes = {
    TableKind{
        Kind::kKernel, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", {"start", "end", "", "", "", "", "name"}},
    TableKind{Kind::kKernel, "CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "", "", "", "", "name"}},
};

// CUpti_ActivityMemoryKind (cupti_activity.h), which differs from Nsight's.
MemoryKind NvprofMemoryKind(int64_t memory_kind) {
  switch (memory_kind) {
    case 1:
      return MemoryKind::kPageable;
    case 2:
      return MemoryKind::kPinned;
    case 3:
    case 4:  // array
    case 6:  // device static
      return MemoryKind::kDevice;
    case 5:
    case 7:  // managed static
      return MemoryKind::kManaged;
    default:
      return MemoryKind::kUnknown;
  }
}

constexpr std::string_view kStrings = "StringTable";

// Times are CUPTI's, in ns since the Unix epoch.
constexpr activities::Layout kNvprofLayout = {.format = TraceFormat::kNvprofSqlite,
                                              .what = "nvprof database",
                                              .strings = kStrings,
                                              .string_id = "_id_",
                                              .mangled = true,
                                              .raw_times = true,
                                              .tables = kNvprofTables,
                                              .kernel_times = kNvprofKernelTimes,
                                              .memory_kind = NvprofMemoryKind};

}  // namespace

bool IsNvprof(std::span<const std::string> table_names) {
  const auto has = [table_names](std::string_view name) {
    return std::ranges::find(table_names, name) != table_names.end();
  };
  return has(kStrings) &&
         std::ranges::any_of(kNvprofTables, [&has](const TableKind& kind) { return has(kind.table); });
}

Result<std::unique_ptr<Trace>> OpenNvprof(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                          const OpenOptions& options) {
  return activities::OpenActivities(std::move(database), path, kNvprofLayout, {}, options);
}

}  // namespace gpusonde::importers::nvprof
