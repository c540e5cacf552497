// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "importers/event.h"

// The tables of an Nsight Systems SQLite export that are read, by the names that exports of 2022.2 to 2026.2
// use. A table is there only if it has rows, and a column only in the versions that know it.
namespace gpusonde::importers::nsys {

enum class Kind : uint8_t { kKernel, kMemcpy, kMemset, kRuntime, kNvtx, kSync, kGraph };

struct TableKind {
  Kind kind;
  std::string_view table;
  std::array<std::string_view, 14> columns;  // in the order of the kind's own enum below
};

// What every activity of a device begins with.
enum Gpu : uint8_t { kStart, kEnd, kDevice, kStream, kCorrelation, kGlobalPid, kGpuColumns };
enum Kernel : uint8_t { kName = kGpuColumns, kShortName, kGridX, kGridY, kGridZ, kBlockX, kBlockY, kBlockZ };
enum Memcpy : uint8_t { kBytes = kGpuColumns, kCopyKind, kSourceKind, kTargetKind };
enum Memset : uint8_t { kMemsetBytes = kGpuColumns, kMemoryKind };
enum Runtime : uint8_t { kGlobalTid = kEnd + 1, kCallCorrelation, kNameId };
enum Nvtx : uint8_t { kEventType = kEnd + 1 };

inline constexpr std::array kTables = {
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
    TableKind{Kind::kGraph, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"start", "end"}},
};

// What of kernels is enough to say how often and how long each ran.
inline constexpr TableKind kKernelTimes = {
    Kind::kKernel,
    "CUPTI_ACTIVITY_KIND_KERNEL",
    {"start", "end", "", "", "", "", "demangledName", "shortName", "", "", "", "", "", ""}};

// ENUM_NSYS_EVENT_TYPE: the two that are ranges.
inline constexpr int64_t kPushPopRange = 59;
inline constexpr int64_t kStartEndRange = 60;

// A globalTid is the hardware's id (8 bits), the virtual machine's (8), the process's (24), the thread's
// (24); without the last it names the process. globalPid is the same with a thread of 0.
inline constexpr int kThreadBits = 24;

CopyKind CopyKindOf(int64_t copy_kind);        // ENUM_CUDA_MEMCPY_OPER
MemoryKind MemoryKindOf(int64_t memory_kind);  // ENUM_CUDA_MEM_KIND

}  // namespace gpusonde::importers::nsys
