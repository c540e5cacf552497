// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "importers/event.h"
#include "importers/trace.h"

// SQLite databases that hold CUPTI's activity records, a table for each kind: what Nsight Systems exports and
// nvprof wrote have in common.
namespace gpusonde::importers::activities {

enum class Kind : uint8_t { kKernel, kMemcpy, kMemset, kRuntime, kNvtx, kMarker, kSync, kGraph };

struct TableKind {
  Kind kind;
  std::string_view table;
  std::array<std::string_view, 14> columns;  // in the order of the kind's own enum below; "": none
  // Of calls that are known by numbers: what stands before the number in their names.
  std::string_view call_prefix = {};
};

// What every activity of a device begins with.
enum Gpu : uint8_t { kStart, kEnd, kDevice, kStream, kCorrelation, kGlobalPid, kGpuColumns };
enum Kernel : uint8_t { kName = kGpuColumns, kShortName, kGridX, kGridY, kGridZ, kBlockX, kBlockY, kBlockZ };
enum Memcpy : uint8_t { kBytes = kGpuColumns, kCopyKind, kSourceKind, kTargetKind };
enum Memset : uint8_t { kMemsetBytes = kGpuColumns, kMemoryKind };
enum Runtime : uint8_t { kGlobalTid = kEnd + 1, kCallCorrelation, kNameId };
enum Nvtx : uint8_t { kEventType = kEnd + 1 };
enum Marker : uint8_t { kMarkerFlags = kEnd };

// How a profiler lays its database out.
struct Layout {
  TraceFormat format = TraceFormat::kNsysSqlite;
  std::string_view what;  // for errors: "Nsight Systems export"
  std::string_view strings;
  std::string_view string_id;  // its INTEGER PRIMARY KEY
  bool mangled = false;        // C++ names are as the linker knows them
  std::span<const TableKind> tables;
  std::span<const TableKind> kernel_times;  // what is enough to say how often and how long each kernel ran
  importers::MemoryKind (*memory_kind)(int64_t number) = nullptr;
};

// CUpti_ActivityMemcpyKind (cupti_activity.h), which Nsight's ENUM_CUDA_MEMCPY_OPER extends.
CopyKind CopyKindOf(int64_t copy_kind);

}  // namespace gpusonde::importers::activities
