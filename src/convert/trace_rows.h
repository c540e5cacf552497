// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/detail/detail_sink.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "convert/name_store.h"
#include "convert/rows.h"
#include "convert/span_rows.h"
#include "importers/event.h"
#include "importers/trace.h"

namespace gpusonde::convert {

// Turns one trace, read in detail, into rows: GPU work as it comes, spans in Finish, sorted by then. Not
// thread-safe.
class TraceRows final : public analyze::DetailSink {
 public:
  struct Identity {
    Id128 source;
    std::string file_name;
    bool one_process = false;  // events of the format don't say which process they are of
  };
  // `info` is complete and outlives it, as does `rows`.
  TraceRows(Identity identity, const importers::TraceInfo& info, Rows& rows);

  uint32_t Name(std::string_view name) override { return names_.Add(name); }
  void Other(int64_t count) override { unused_ += count; }
  void Drop(importers::Dropped reason, int64_t count) override {
    dropped_[static_cast<size_t>(reason)] += count;
  }
  void Detailed(const importers::EventBatch& batch) override;
  void Launch(const importers::MeasuredLaunch& launch,
              std::span<const importers::MetricValue> metrics) override;
  void MetricTexts(int64_t count) override { unused_ += count; }
  void NameProcess(int64_t process, std::string_view name) override;
  void NameThread(int64_t process, int32_t tid, std::string_view name) override;
  void NameDomain(int64_t process, int32_t domain, std::string_view name) override;

  // The first error so far: of the rows' sink or of temporary files; kUnsupported for too many processes.
  Status status() const;
  // Writes what depends on the whole trace. Call it once all was read.
  Status Finish();

  // Events that have become rows or frames of stacks.
  int64_t events() const { return events_; }
  // Kernels, graphs, copies and sets among them, and launches with metrics.
  int64_t gpu_events() const { return gpu_events_; }
  int64_t dropped() const;

 private:
  static constexpr size_t kMaxProcesses = 65'536;
  // Bound on the processes, threads and domains whose names are kept; beyond it, names are forgotten.
  static constexpr size_t kMaxThreads = 262'144;

  struct Process {
    Id128 id;
    std::optional<TimeRange> gpu;  // from its first call or work on a GPU to the end of the last
    bool has_work = false;
    std::optional<Id128> awaited;  // of SpanRows::Process, set when all events were added
  };

  // The key of an event's process.
  int64_t KeyOf(int64_t process) const { return identity_.one_process ? 0 : process; }
  Process& ProcessOf(int64_t key);
  Id128 DeviceOf(int64_t process, int32_t ordinal);
  void Add(const importers::GpuEvent& event, const importers::GpuDetail& detail);
  void Add(const importers::SyncWait& wait);
  void Add(importers::Span span);
  void Add(const importers::Allocation& allocation);
  // Times as rows have them.
  int64_t At(int64_t time_ns) const { return time_ns + info_.epoch_offset_ns; }
  void See(int64_t start_ns, int64_t end_ns);
  static void Extend(std::optional<TimeRange>& range, int64_t start_ns, int64_t end_ns);
  std::optional<Id128> OnlyDeviceOf(int64_t key) const;
  void WriteProcesses();
  void WriteSource();
  void WriteDrops(const model::DropCounts& stacks);

  Identity identity_;
  const importers::TraceInfo& info_;
  Rows& rows_;
  NameStore names_;
  SpanRuns spans_;
  AllocationRuns allocations_;
  std::map<int64_t, Process> processes_;
  std::map<int64_t, std::string> process_names_;
  std::map<std::pair<int64_t, int32_t>, std::string> thread_names_;
  SpanRows::DomainNames domain_names_;             // by key
  std::set<std::pair<int64_t, int32_t>> threads_;  // by key
  std::map<std::pair<int64_t, int32_t>, Id128> devices_;
  bool has_waits_ = false;           // whether the trace has records of them
  std::optional<int64_t> pid_;       // of the one process
  std::optional<TimeRange> extent_;  // of all events
  int64_t events_ = 0;
  int64_t gpu_events_ = 0;
  int64_t launches_ = 0;  // with metrics
  int64_t unused_ = 0;
  std::array<int64_t, importers::kDroppedNames.size()> dropped_{};
  Status status_;
};

}  // namespace gpusonde::convert
