// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "analyze/packed_records.h"
#include "importers/event.h"

// Compact events for analyses that need time order; sorted on disk when they don't fit in memory.
namespace gpusonde::analyze {

struct GpuRecord {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t correlation = 0;
  uint32_t stream = 0;
  uint32_t name = 0;   // of kernels and graphs: in the state's NameTable; of others: PackTransfer
  uint32_t shape = 0;  // of kernels
  uint32_t bytes = 0;  // of transfers, at most 2^32 − 1; of kernels: GpuEvent::collective
  uint16_t rank = 0;   // in the state's RankTable
  importers::GpuWork work = importers::GpuWork::kKernel;
  uint8_t has_correlation = 0;  // 0 or 1; not a bool, as files may hold other bytes
};
static_assert(sizeof(GpuRecord) == 40 && offsetof(GpuRecord, correlation) == Packing<GpuRecord>::kNumberAt);
template <>
inline constexpr bool kIsPacked<GpuRecord> = true;

// What kind of copy or set it is, as a number: the same in every state.
constexpr uint32_t PackTransfer(importers::CopyKind copy, importers::MemoryKind source,
                                importers::MemoryKind target) {
  return static_cast<uint32_t>(copy) | static_cast<uint32_t>(source) << 8 |
         static_cast<uint32_t>(target) << 16;
}
constexpr importers::CopyKind CopyOf(uint32_t packed) {
  return static_cast<importers::CopyKind>(packed & 0xFF);
}
constexpr importers::MemoryKind SourceOf(uint32_t packed) {
  return static_cast<importers::MemoryKind>(packed >> 8 & 0xFF);
}
constexpr importers::MemoryKind TargetOf(uint32_t packed) {
  return static_cast<importers::MemoryKind>(packed >> 16 & 0xFF);
}

struct CallRecord {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t correlation = 0;
  uint32_t thread = 0;  // importers::ApiCall::thread
};
static_assert(sizeof(CallRecord) == 24 &&
              offsetof(CallRecord, correlation) == Packing<CallRecord>::kNumberAt);
template <>
inline constexpr bool kIsPacked<CallRecord> = true;

// A call that waits for the GPU (sync_calls.h).
struct SyncRecord {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t name = 0;  // in the state's NameTable
  uint32_t thread = 0;
};
static_assert(sizeof(SyncRecord) == 24 && offsetof(SyncRecord, name) == Packing<SyncRecord>::kNumberAt);
template <>
inline constexpr bool kIsPacked<SyncRecord> = true;

// Maps numbers of names and ranks to those of another table.
struct Renumbering {
  std::vector<uint32_t> names;
  std::vector<uint16_t> ranks;

  void operator()(GpuRecord& record) const {
    if (importers::IsNamed(record.work)) record.name = names[record.name];
    record.rank = ranks[record.rank];
  }
  void operator()(SyncRecord& record) const { record.name = names[record.name]; }
  // Calls have neither.
  void operator()(CallRecord& /*record*/) const {}
  // This mapping, followed by another.
  Renumbering Then(const Renumbering& next) const {
    Renumbering both = *this;
    for (uint32_t& name : both.names) name = next.names[name];
    for (uint16_t& rank : both.ranks) rank = next.ranks[rank];
    return both;
  }
};

// A time as an unsigned number that sorts equally.
constexpr uint64_t RadixOf(int64_t time_ns) {
  return static_cast<uint64_t>(time_ns) ^ uint64_t { 1 } << 63;
}

// Sort key independent of which thread saw the event first, as numbers of names and ranks differ between
// threads. Records with equal keys are interchangeable for every analysis.
struct ByCorrelation {
  static auto Key(const GpuRecord& r) {
    return std::tuple(r.has_correlation == 0, r.correlation, r.start_ns, r.end_ns, r.stream, r.work, r.shape,
                      r.bytes);
  }
  static auto Key(const CallRecord& r) { return std::tuple(r.correlation, r.start_ns, r.end_ns, r.thread); }
  // The leading part of Key.
  static uint64_t Radix(const GpuRecord& r) {
    return uint64_t{r.has_correlation != 0 ? 0u : 1u} << 32 | r.correlation;
  }
  static uint64_t Radix(const CallRecord& r) { return r.correlation; }
  template <class Record>
  bool operator()(const Record& a, const Record& b) const {
    const uint64_t of_a = Radix(a);
    const uint64_t of_b = Radix(b);
    return of_a != of_b ? of_a < of_b : Key(a) < Key(b);
  }
};

// An outer call comes before those within it. Of equal keys only the names differ, which SyncFollower orders.
struct BySyncStart {
  static auto Key(const SyncRecord& r) { return std::tuple(r.start_ns, -r.end_ns, r.thread); }
  static uint64_t Radix(const SyncRecord& r) { return RadixOf(r.start_ns); }
  bool operator()(const SyncRecord& a, const SyncRecord& b) const { return Key(a) < Key(b); }
};

// A GPU event with the call that launched it.
struct LaunchedRecord {
  GpuRecord gpu;
  int64_t call_start_ns = 0;
  int64_t call_end_ns = 0;
  uint32_t has_call = 0;
  uint32_t thread = 0;  // of the call
};
static_assert(sizeof(LaunchedRecord) == 64);

struct ByStart {
  static auto Key(const LaunchedRecord& r) {
    return std::tuple(r.gpu.start_ns, r.gpu.end_ns, r.gpu.stream, r.gpu.correlation, r.gpu.work, r.gpu.shape,
                      r.gpu.bytes, r.call_start_ns, r.call_end_ns);
  }
  static uint64_t Radix(const LaunchedRecord& r) { return RadixOf(r.gpu.start_ns); }
  bool operator()(const LaunchedRecord& a, const LaunchedRecord& b) const {
    return a.gpu.start_ns != b.gpu.start_ns ? a.gpu.start_ns < b.gpu.start_ns : Key(a) < Key(b);
  }
};

// A launch joins the queue at its call's start and leaves it at its start on the GPU.
struct QueueEntry {
  int64_t time_ns = 0;
  uint32_t thread = 0;  // of the call
  uint16_t rank = 0;
  uint16_t is_named = 0;  // whether it launches a kernel or a graph; 0 or 1
};
static_assert(sizeof(QueueEntry) == 16);

struct ByTime {
  static uint64_t Radix(const QueueEntry& entry) { return RadixOf(entry.time_ns); }
  static auto Key(const QueueEntry& entry) {
    return std::tuple(entry.time_ns, entry.thread, entry.rank, entry.is_named);
  }
  bool operator()(const QueueEntry& a, const QueueEntry& b) const {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : Key(a) < Key(b);
  }
};

}  // namespace gpusonde::analyze
