// SPDX-License-Identifier: Apache-2.0
#include "importers/nsys/nsys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "importers/activities/activity_trace.h"

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
               "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"}},
    TableKind{Kind::kMemcpy,
              "CUPTI_ACTIVITY_KIND_MEMCPY",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
               "srcKind", "dstKind"}},
    TableKind{Kind::kMemset,
              "CUPTI_ACTIVITY_KIND_MEMSET",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind"}},
    TableKind{Kind::kRuntime,
              "CUPTI_ACTIVITY_KIND_RUNTIME",
              {"start", "end", "globalTid", "correlationId", "nameId"}},
    TableKind{Kind::kNvtx, "NVTX_EVENTS", {"start", "end", "eventType"}},
    TableKind{Kind::kSync, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"start", "end"}},
    TableKind{Kind::kGraph,
              "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
              {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId"},
              "CUDA graph "},
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

}  // namespace

bool IsNsys(std::span<const std::string> table_names) {
  const auto has = [table_names](std::string_view name) {
    return std::ranges::find(table_names, name) != table_names.end();
  };
  if (!has("StringIds")) return false;
  return std::ranges::any_of(kTables, [&has](const TableKind& kind) { return has(kind.table); }) ||
         has("TARGET_INFO_SESSION_START_TIME") || has("META_DATA_EXPORT") || has("EXPORT_META_DATA");
}

Result<std::unique_ptr<Trace>> OpenNsys(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                        const OpenOptions& options) {
  const auto start_ns = ReadSessionStart(*database);
  if (!start_ns.has_value())
    return Fail(Error(start_ns.error()).With(path + ": " + std::string(kLayout.what)));
  return activities::OpenActivities(std::move(database), path, kLayout, *start_ns, options);
}

}  // namespace gpusonde::importers::nsys
