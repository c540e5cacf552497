// SPDX-License-Identifier: Apache-2.0
#include "importers/nsys/nsys.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "importers/activities/activity_trace.h"
#include "importers/sqlite/for_each_row.h"

namespace gpusonde::importers::nsys {
namespace {

using activities::Kind;
using activities::TableKind;

// Table names used by exports of 2022.2 to 2026.2. A table exists only if it has rows, and a column only in
// the versions that know it.
constexpr std::array kTables = {
    TableKind{Kind::kKernel,
              "CUPTI_ACTIVITY_KIND_KERNEL",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName",
               "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "contextId",
               "graphNodeId", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"}},
    TableKind{Kind::kMemcpy,
              "CUPTI_ACTIVITY_KIND_MEMCPY",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
               "srcKind", "dstKind", "", "", "", "", "contextId", "graphNodeId"}},
    TableKind{Kind::kMemset,
              "CUPTI_ACTIVITY_KIND_MEMSET",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind", "",
               "", "", "", "", "", "contextId", "graphNodeId"}},
    TableKind{Kind::kRuntime,
              "CUPTI_ACTIVITY_KIND_RUNTIME",
              {"start", "end", "globalTid", "correlationId", "nameId", "", "", "", "", "", "", "", "", "",
               "returnValue"}},
    TableKind{Kind::kOsCall,
              "OSRT_API",
              {"start", "end", "globalTid", "", "nameId", "", "", "", "", "", "", "", "", "", "returnValue"},
              {},
              /*only_in_detail=*/true},
    TableKind{Kind::kProcessNames, "PROCESSES", {"globalPid", "name"}, {}, /*only_in_detail=*/true},
    TableKind{Kind::kThreadNames, "ThreadNames", {"globalTid", "nameId"}, {}, /*only_in_detail=*/true},
    TableKind{Kind::kNvtx,
              "NVTX_EVENTS",
              {"start",     "end",  "eventType", "",         "",           "",         "",
               "",          "",     "",          "",         "",           "",         "",
               "globalTid", "text", "textId",    "domainId", "binaryData", "jsonText", "jsonTextId"}},
    TableKind{Kind::kSync,
              "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
              {"start",
               "end",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "",
               "deviceId",
               "streamId",
               "correlationId",
               "globalPid",
               "contextId",
               "syncType"}},
    TableKind{Kind::kGraph,
              "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId", "", "", "",
               "", "", "", "", "contextId"},
              kGraphPrefix},
};

constexpr std::array kKernelTimes = {
    TableKind{Kind::kKernel,
              "CUPTI_ACTIVITY_KIND_KERNEL",
              {"start", "end", "", "", "", "", "demangledName", "shortName"}},
};

// ENUM_CUDA_MEM_KIND.
MemoryKind MemoryKindOf(int64_t memory_kind) {
  switch (memory_kind) {
    case 0:
      return MemoryKind::kPageable;
    case 1:
      return MemoryKind::kPinned;
    case 2:
    case 3:  // array
    case 5:  // device static
      return MemoryKind::kDevice;
    case 4:
    case 6:  // managed static
      return MemoryKind::kManaged;
    default:
      return MemoryKind::kUnknown;
  }
}

constexpr activities::Layout kLayout = {.format = TraceFormat::kNsysSqlite,
                                        .what = "Nsight Systems export",
                                        .strings = "StringIds",
                                        .string_id = "id",
                                        .tables = kTables,
                                        .kernel_times = kKernelTimes,
                                        .memory_kind = MemoryKindOf};

// When the capture began; 0 if the export doesn't say.
Result<int64_t> ReadSessionStart(const sqlite::Database& database) {
  ASSIGN_OR_RETURN(const std::optional<sqlite::Table> table,
                   database.FindTable("TARGET_INFO_SESSION_START_TIME"));
  if (!table.has_value() || table->parts() == 0) return 0;
  const std::optional<size_t> index = table->Find("utcEpochNs");
  if (!index.has_value()) return 0;
  ASSIGN_OR_RETURN(const auto reader, table->Read(std::array{*index}));
  TRY(reader->Seek(0));
  sqlite::Row row;
  ASSIGN_OR_RETURN(const bool found, reader->Next(row));
  return found && row.cells[0].is_integer() ? row.cells[0].integer : 0;
}

// Longer than the names that NVML reports, 96 bytes. Each process has a copy of them.
constexpr size_t kMaxDeviceText = 256;

// The GPUs by the numbers that events have: TARGET_INFO_CUDA_DEVICE maps those of each process to GPUs; older
// exports have one number for all.
Result<std::vector<TracedDevice>> ReadDevices(const sqlite::Database& database) {
  struct Mapped {
    int64_t ordinal, pid;
  };
  std::map<int64_t, std::vector<Mapped>> mapped;  // by GPU
  constexpr std::array<std::string_view, 3> kMapColumns = {"gpuId", "cudaId", "pid"};
  TRY(sqlite::ForEachRow(database, "TARGET_INFO_CUDA_DEVICE", kMapColumns,
                         [&](std::span<const sqlite::Cell> cells) {
                           mapped[cells[0].integer].push_back({cells[1].integer, cells[2].integer});
                         }));
  std::vector<TracedDevice> devices;
  constexpr std::array<std::string_view, 14> kColumns = {"id",
                                                         "name",
                                                         "uuid",
                                                         "totalMemory",
                                                         "smCount",
                                                         "cuDevice",
                                                         "busLocation",
                                                         "maxWarpsPerSm",
                                                         "threadsPerWarp",
                                                         "maxBlocksPerSm",
                                                         "maxRegistersPerSm",
                                                         "maxShmemPerSm",
                                                         "computeMajor",
                                                         "computeMinor"};
  TRY(sqlite::ForEachRow(database, "TARGET_INFO_GPU", kColumns, [&](std::span<const sqlite::Cell> cells) {
    const auto number = [&](size_t column) {
      return cells[column].is_integer() ? std::optional(cells[column].integer) : std::nullopt;
    };
    const auto text = [&](size_t column) {
      return std::string(Utf8Prefix(cells[column].bytes, kMaxDeviceText));
    };
    TracedDevice device{.name = text(1),
                        .uuid = cells[2].bytes.empty() ? "" : "GPU-" + text(2),
                        .pci_bus = text(6),
                        .sm_count = number(4),
                        .memory_bytes = number(3)};
    constexpr int64_t kMaxLimit = int64_t{1} << 31;  // so that their product is one
    const auto limit = [&](size_t column) {
      return std::clamp<int64_t>(number(column).value_or(0), 0, kMaxLimit);
    };
    device.multiprocessor = {.threads = limit(7) * limit(8),
                             .blocks = limit(9),
                             .registers = limit(10),
                             .shared_bytes = limit(11)};
    device.multiprocessor.SetCapability(limit(12), limit(13));
    // Of GPUs with one number the first counts.
    if (const auto found = mapped.find(cells[0].integer); found != mapped.end()) {
      for (const Mapped& map : std::exchange(found->second, {})) {
        device.ordinal = static_cast<int32_t>(map.ordinal);
        device.pid = map.pid;
        devices.push_back(device);
      }
      return;
    }
    device.ordinal = static_cast<int32_t>(number(5).value_or(cells[0].integer));
    devices.push_back(device);
  }));
  return devices;
}

}  // namespace

bool IsNsys(std::span<const std::string> table_names) {
  const auto has = [table_names](std::string_view name) {
    return std::ranges::find(table_names, name) != table_names.end();
  };
  if (!has(kLayout.strings)) return false;
  return std::ranges::any_of(kTables, [&has](const TableKind& kind) { return has(kind.table); }) ||
         has("TARGET_INFO_SESSION_START_TIME") || has("META_DATA_EXPORT") || has("EXPORT_META_DATA");
}

bool LacksStrings(std::span<const std::string> table_names) {
  return std::ranges::find(table_names, kLayout.strings) == table_names.end() &&
         std::ranges::any_of(kTables, [table_names](const TableKind& kind) {
           return std::ranges::find(table_names, kind.table) != table_names.end();
         });
}

Result<std::unique_ptr<Trace>> OpenNsys(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                        const OpenOptions& options) {
  const auto start_ns = ReadSessionStart(*database);
  if (!start_ns.has_value())
    return Fail(Error(start_ns.error()).With(path + ": " + std::string(kLayout.what)));
  TraceInfo info{.epoch_offset_ns = EpochOffsetOf(*start_ns)};
  if (options.detail) {
    auto devices = ReadDevices(*database);
    if (!devices.has_value())
      return Fail(std::move(devices).error().With(path + ": " + std::string(kLayout.what)));
    info.devices = *std::move(devices);
  }
  return activities::OpenActivities(std::move(database), path, kLayout, std::move(info), options);
}

}  // namespace gpusonde::importers::nsys
