// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "importers/event.h"
#include "importers/trace.h"

// SQLite databases of CUPTI's activity records with a table per kind: the common part of Nsight Systems
// exports and nvprof databases.
namespace gpusonde::importers::activities {

enum class Kind : uint8_t {
  kKernel,
  kMemcpy,
  kMemset,
  kRuntime,
  kNvtx,
  kMarker,
  kSync,
  kGraph,
  kOsCall,
  kProcessNames,
  kThreadNames
};

// Columns of a table in the order of the kind's own enum below; "": none.
constexpr size_t kMaxColumns = 21;

struct TableKind {
  Kind kind;
  std::string_view table;
  std::array<std::string_view, kMaxColumns> columns;
  // For calls and graphs, which are only known by number: the prefix of their generated names.
  std::string_view name_prefix = {};
  bool only_in_detail = false;
};

// The leading columns of every activity on a device.
enum Gpu : uint8_t { kStart, kEnd, kDevice, kStream, kCorrelation, kGlobalPid, kGpuColumns };
enum Kernel : uint8_t { kName = kGpuColumns, kShortName, kGridX, kGridY, kGridZ, kBlockX, kBlockY, kBlockZ };
enum Memcpy : uint8_t { kBytes = kGpuColumns, kCopyKind, kSourceKind, kTargetKind };
enum Memset : uint8_t { kMemsetBytes = kGpuColumns, kMemoryKind };
enum Graph : uint8_t { kGraphId = kGpuColumns };
// The thread's id is in one of the two.
enum Runtime : uint8_t { kGlobalTid = kEnd + 1, kCallCorrelation, kNameId, kThreadId };
enum Nvtx : uint8_t { kEventType = kEnd + 1 };
enum ProcessNames : uint8_t { kNamedProcess, kProcessName };
enum ThreadNames : uint8_t { kNamedThread, kThreadName };
enum Marker : uint8_t { kMarkerFlags = kEnd };
// Behind those of its kind, columns that are read only in detail.
constexpr size_t kFirstDetail = 14;
enum GpuDetails : uint8_t { kContext = kFirstDetail, kGraphNode, kRegisters, kStaticShared, kDynamicShared };
enum RuntimeDetails : uint8_t { kResult = kFirstDetail };
enum NvtxDetails : uint8_t {
  kRangeThread = kFirstDetail,
  kText,
  kTextId,
  kDomain,  // in detail and of traces with payloads of NCCL, like those below
  kPayload,
  kJson,
  kJsonId
};
enum SyncDetails : uint8_t {
  kSyncDevice = kFirstDetail,
  kSyncStream,
  kSyncCorrelation,
  kSyncPid,
  kSyncContext,
  kSyncType
};

// Nsight's globalTid holds the hardware's id (8 bits), the virtual machine's (8), the process's (24) and the
// thread's (24); without the thread it identifies the process. globalPid is the same with a thread of 0.
constexpr int kThreadBits = 24;
constexpr int64_t ProcessOf(int64_t global_id) { return global_id >> kThreadBits; }

// The database layout of a profiler.
struct Layout {
  TraceFormat format = TraceFormat::kNsysSqlite;
  std::string_view what;  // for errors: "Nsight Systems export"
  std::string_view strings;
  std::string_view string_id;  // its INTEGER PRIMARY KEY
  bool mangled = false;        // C++ names are mangled
  // Times are CUPTI's own: a start and end of 0 mean that they could not be collected, and those of the GPU
  // are by a clock of its own where CUPTI couldn't convert them.
  bool raw_times = false;
  std::span<const TableKind> tables;
  std::span<const TableKind> kernel_times;  // the tables needed to count and time kernels
  importers::MemoryKind (*memory_kind)(int64_t number) = nullptr;
};

// CUpti_ActivityMemcpyKind (cupti_activity.h), which Nsight's ENUM_CUDA_MEMCPY_OPER extends.
CopyKind CopyKindOf(int64_t copy_kind);

// CUpti_ActivitySynchronizationType, which Nsight's tables hold too.
SyncKind SyncKindOf(int64_t sync_type);

}  // namespace gpusonde::importers::activities
