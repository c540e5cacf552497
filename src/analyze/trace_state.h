// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "analyze/communication_calls.h"
#include "analyze/extent.h"
#include "analyze/message_table.h"
#include "analyze/metric_table.h"
#include "analyze/name_table.h"
#include "analyze/rank_table.h"
#include "analyze/recorded_time.h"
#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/steps/step_candidates.h"
#include "importers/event.h"
#include "model/moments.h"
#include "model/sketch.h"

namespace gpusonde::analyze {

// Durations of one kind of event, in ns.
struct Durations {
  model::Moments moments;
  model::Sketch sketch;

  void Add(int64_t duration_ns) {
    moments.Add(duration_ns);
    sketch.Add(duration_ns);
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(moments);
    archive(sketch);
  }
  void Merge(const Durations& other) {
    moments.Merge(other.moments);
    sketch.Merge(other.sketch);
  }
};

// Copies or sets of one kind.
struct Transfers {
  Durations durations;
  int64_t bytes = 0;  // saturates

  void Add(int64_t duration_ns, int64_t more_bytes) {
    durations.Add(duration_ns);
    AddBytes(more_bytes);
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(durations);
    archive(bytes);
  }
  void Merge(const Transfers& other) {
    durations.Merge(other.durations);
    AddBytes(other.bytes);
  }

 private:
  void AddBytes(int64_t more) {
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = std::numeric_limits<int64_t>::max();
  }
};

struct TransferKey {
  importers::CopyKind copy = importers::CopyKind::kUnknown;  // unknown for sets
  importers::MemoryKind source = importers::MemoryKind::kUnknown;
  importers::MemoryKind target = importers::MemoryKind::kUnknown;

  auto operator<=>(const TransferKey&) const = default;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(copy);
    archive(source);
    archive(target);
    archive.Require(copy <= importers::CopyKind::kHostToHost && source <= importers::MemoryKind::kManaged &&
                    target <= importers::MemoryKind::kManaged);
  }
};

// A process group by its number in a trace; empty if several have the number.
struct KnownGroup {
  importers::ProcessGroup group;

  // Adds what is said of a group with the number elsewhere.
  void Merge(const importers::ProcessGroup& other) {
    if (group.identity != other.identity || group.numbered != other.numbered) {
      group = {};
      return;
    }
    group.size = std::max(group.size, other.size);
    if (group.label.empty() || (!other.label.empty() && other.label < group.label)) group.label = other.label;
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(group.identity);
    archive(group.size);
    archive(group.numbered);
    archive(group.label);
    archive.Require(group.label.size() <= importers::ProcessGroup::kMaxLabelBytes);
  }
};
using KnownGroups = std::map<uint16_t, KnownGroup>;

// The totals of a trace.
struct TraceTotals {
  int64_t others = 0;  // events that are only counted
  int64_t ranges = 0;
  int64_t skipped_shards = 0;  // parts that could not be read and were skipped
  int64_t metric_texts = 0;    // values of metrics that are texts
  int64_t large_numbers = 0;   // correlations of GPU events and calls that don't fit in records
  std::array<int64_t, importers::kDroppedNames.size()> dropped{};
  Extent on_gpu;
  Extent on_host;

  void Merge(const TraceTotals& other);

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(others);
    archive(ranges);
    archive(skipped_shards);
    archive(metric_texts);
    archive(large_numbers);
    for (int64_t& count : dropped) archive(count);
    archive(on_gpu);
    archive(on_host);
  }
  int64_t Dropped() const;
};

using GpuRuns = SortedRuns<GpuRecord, ByCorrelation, Renumbering>;
using CallRuns = SortedRuns<CallRecord, ByCorrelation, Renumbering>;
using SyncRuns = SortedRuns<SyncRecord, BySyncStart, Renumbering>;

// A process's GPU work and calls. Calls are joined to launches within a process, so processes can be analysed
// in parallel.
struct ProcessRecords {
  explicit ProcessRecords(const std::shared_ptr<TemporaryFile>& file) : gpu(file), calls(file), syncs(file) {}
  GpuRuns gpu;
  CallRuns calls;
  SyncRuns syncs;
};

// The part of a trace that one thread read: everything that doesn't depend on event order as sums, and
// records for timelines (timeline/), which do. Sums are integers and records are sorted, so merging gives the
// same result however threads divided the trace.
class TraceState final : public importers::EventSink {
 public:
  // Without records only sums are kept, and no timelines can be built.
  explicit TraceState(bool keep_records = true)
      : file_(std::make_shared<TemporaryFile>()), keep_records_(keep_records) {}
  TraceState(TraceState&&) noexcept = default;
  TraceState& operator=(TraceState&&) noexcept = default;

  uint32_t Name(std::string_view name) override { return names_.Add(name); }
  uint32_t Label(std::string_view name) override { return steps_.Label(name); }
  void Group(const importers::ProcessGroup& group) override;
  void Gpu(std::span<const importers::GpuEvent> events) override;
  void Api(std::span<const importers::ApiCall> calls) override;
  void Ranges(std::span<const importers::Range> ranges) override;
  void Communication(std::span<const importers::CommunicationCall> calls) override {
    if (keep_records_) communication_.Add(calls);
  }
  void Messages(std::span<const importers::Message> messages) override {
    if (keep_records_) messages_.Add(messages);
  }
  void Launch(const importers::MeasuredLaunch& launch,
              std::span<const importers::MetricValue> metrics) override;
  void MetricTexts(int64_t count) override { totals_.metric_texts += count; }
  void Other(int64_t count) override { totals_.others += count; }
  void Drop(importers::Dropped reason, int64_t count) override {
    totals_.dropped[static_cast<size_t>(reason)] += count;
  }
  // Counts a part of the trace that could not be read.
  void SkipShard() { ++totals_.skipped_shards; }
  // What the trace has at some time beside the events that this is given.
  void Cover(int64_t start_ns, int64_t end_ns) { recorded_.Cover(start_ns, end_ns); }
  // What RecordedTime of all of the trace's events says.
  void SetUnrecorded(UnrecordedTime unrecorded) { unrecorded_ = std::move(unrecorded); }
  // The GPU's times may be by another clock than the calls' (importers::TraceInfo).
  void SeparateGpuClock() { separate_gpu_clock_ = true; }

  // Merges what another thread read.
  void Merge(TraceState&& other);
  // The two halves of Merge, for states whose records are elsewhere. Adopt adds sums, names and ranks, and
  // returns the other's numbers here; then records with these numbers are added.
  Renumbering Adopt(const TraceState& other);
  void TakeRecords(TraceState&& other, Renumbering change);
  // Adds everything but the records, which stay with their trace; returns the numbers of its names here.
  std::vector<uint32_t> MergeSums(const TraceState& other);
  // Frees the records once they are no longer needed.
  void DropRecords() {
    processes_.clear();
    file_ = std::make_shared<TemporaryFile>();
  }
  // Sorts the remaining records; otherwise Finish does, in one thread for all states that were merged.
  void SortRecords();
  // Bounds the names, and sorts the remaining records. Errors: those of temporary files, whenever they
  // occurred; kUnsupported for more ranks than records can number.
  Status Finish();

  const NameTable& names() const { return names_; }
  bool separate_gpu_clock() const { return separate_gpu_clock_; }
  const RecordedTime& recorded() const { return recorded_; }
  const UnrecordedTime& unrecorded() const { return unrecorded_; }
  const TraceTotals& totals() const { return totals_; }
  // By a name's number; those that no such event has are empty or missing at the end.
  std::span<const Durations> kernels() const { return kernels_; }
  std::span<const Durations> graphs() const { return graphs_; }
  std::span<const Durations> calls() const { return calls_; }
  const std::map<TransferKey, Transfers>& copies() const { return copies_; }
  const std::map<TransferKey, Transfers>& sets() const { return sets_; }
  const KnownGroups& groups() const { return groups_; }
  const StepCandidates& steps() const { return steps_; }
  const CommunicationCalls& communication() const { return communication_; }
  const MessageTable& messages() const { return messages_; }
  const RankTable& ranks() const { return ranks_; }
  // Of each rank's GPU events, by its number in ranks(), which may have more that have no events.
  std::span<const Extent> extents() const { return extents_; }
  const MetricTable& metrics() const { return metrics_; }
  // By a process's number in ranks(), which may have more that have no records.
  std::span<const ProcessRecords> processes() const { return processes_; }
  // The records of a process, to add some with this state's numbers.
  ProcessRecords& RecordsOf(uint16_t process);
  // Writes the largest buffers to disk while all together exceed kMaxBufferedBytes.
  void LimitMemory();

  // Everything but the records.
  template <class Archive>
  void Transfer(Archive& archive) {
    names_.Transfer(archive);
    archive(totals_);
    archive(separate_gpu_clock_);
    archive(recorded_);
    archive(unrecorded_);
    archive(kernels_);
    archive(graphs_);
    archive(calls_);
    archive(copies_);
    archive(sets_);
    archive(groups_);
    steps_.Transfer(archive);
    archive(communication_);
    archive(messages_);
    ranks_.Transfer(archive);
    archive(extents_);
    archive(metrics_);
    archive.Require(extents_.size() <= ranks_.ranks().size());
    archive.Require(metrics_.HasOnlyKnown(names_.size(), ranks_.ranks().size()));
    for (const auto* named : {&kernels_, &graphs_, &calls_})
      archive.Require(named->size() <= 2 * names_.size());
  }

 private:
  void Summarize(const importers::GpuEvent& event);
  // Adds the durations of dropped names to NameTable::kOther.
  void JoinDropped();
  Extent& ExtentOf(uint16_t rank);
  void RefuseRanks();
  // Whether a name is that of a call which waits for the GPU.
  bool IsSync(uint32_t name) {
    if (name < sync_names_.size() && sync_names_[name] != NameClass::kUnknown)
      return sync_names_[name] == NameClass::kSync;
    return ClassifySync(name);
  }
  bool ClassifySync(uint32_t name);
  // Whether records can have the correlation; counts those that are too large.
  bool CanJoin(int64_t correlation);

  enum class NameClass : uint8_t { kUnknown, kOther, kSync };

  static constexpr size_t kMaxBufferedBytes = size_t{24} << 20;

  NameTable names_;
  TraceTotals totals_;
  bool separate_gpu_clock_ = false;
  RecordedTime recorded_;
  UnrecordedTime unrecorded_;
  std::vector<Durations> kernels_;
  std::vector<Durations> graphs_;
  std::vector<Durations> calls_;
  std::map<TransferKey, Transfers> copies_;
  std::map<TransferKey, Transfers> sets_;
  KnownGroups groups_;
  StepCandidates steps_;
  CommunicationCalls communication_;
  MessageTable messages_;
  RankTable ranks_;
  std::vector<Extent> extents_;
  MetricTable metrics_;
  std::shared_ptr<TemporaryFile> file_;
  bool keep_records_ = true;
  std::vector<ProcessRecords> processes_;
  std::vector<NameClass> sync_names_;  // by name, as far as calls had them
  Status status_;
};

}  // namespace gpusonde::analyze
