// SPDX-License-Identifier: Apache-2.0
#include "analyze/trace_state.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "analyze/sync_calls.h"

namespace gpusonde::analyze {
namespace {

Durations& At(std::vector<Durations>& all, uint32_t name) {
  if (name >= all.size()) all.resize(std::max<size_t>(name + 1, all.size() * 2));
  return all[name];
}

uint32_t Saturate(int64_t bytes) {
  return static_cast<uint32_t>(std::min<int64_t>(bytes, std::numeric_limits<uint32_t>::max()));
}

void MergeNamed(std::vector<Durations>& all, std::span<const Durations> others,
                std::span<const uint32_t> ids) {
  for (size_t i = 0; i < others.size(); ++i)
    if (others[i].moments.count() != 0) At(all, ids[i]).Merge(others[i]);
}

}  // namespace

void TraceTotals::Merge(const TraceTotals& other) {
  others += other.others;
  ranges += other.ranges;
  skipped_shards += other.skipped_shards;
  metric_texts += other.metric_texts;
  large_numbers += other.large_numbers;
  for (size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  on_gpu.Cover(other.on_gpu);
  on_host.Cover(other.on_host);
}

int64_t TraceTotals::Dropped() const { return std::accumulate(dropped.begin(), dropped.end(), int64_t{0}); }

void TraceState::Summarize(const importers::GpuEvent& event) {
  const int64_t duration_ns = event.end_ns - event.start_ns;
  totals_.on_gpu.Cover(event.start_ns, event.end_ns);
  if (event.work == importers::GpuWork::kKernel) return At(kernels_, event.name).Add(duration_ns);
  if (event.work == importers::GpuWork::kGraph) return At(graphs_, event.name).Add(duration_ns);
  auto& transfers = event.work == importers::GpuWork::kMemcpy ? copies_ : sets_;
  transfers[{event.copy, event.source, event.target}].Add(duration_ns, event.bytes);
}

void TraceState::Gpu(std::span<const importers::GpuEvent> events) {
  if (!keep_records_) {
    for (const importers::GpuEvent& event : events) Summarize(event);
    return;
  }
  std::optional<uint16_t> rank;
  RankKey key;
  ProcessRecords* records = nullptr;
  Extent* extent = nullptr;
  for (const importers::GpuEvent& event : events) {
    if (!rank.has_value() || key.process != event.process || key.device != event.device) {
      key = {event.process, event.device};
      rank = ranks_.Add(key);
      if (!rank.has_value()) return RefuseRanks();
      records = &RecordsOf(ranks_.ProcessOf(*rank));
      extent = &ExtentOf(*rank);
    }
    Summarize(event);
    recorded_.Cover(event.start_ns, event.end_ns);
    extent->Cover(event.start_ns, event.end_ns);
    const bool is_kernel = event.work == importers::GpuWork::kKernel;
    const bool has_correlation = CanJoin(event.correlation);
    records->gpu.Add({.start_ns = event.start_ns,
                      .end_ns = event.end_ns,
                      .correlation = has_correlation ? static_cast<uint32_t>(event.correlation) : 0,
                      .stream = event.stream,
                      .name = importers::IsNamed(event.work)
                                  ? event.name
                                  : PackTransfer(event.copy, event.source, event.target),
                      .shape = event.shape,
                      .bytes = is_kernel ? event.collective : Saturate(event.bytes),
                      .rank = *rank,
                      .work = event.work,
                      .has_correlation = has_correlation ? uint8_t{1} : uint8_t{0}});
  }
  LimitMemory();
}

bool TraceState::CanJoin(int64_t correlation) {
  if (correlation > std::numeric_limits<uint32_t>::max()) ++totals_.large_numbers;
  return correlation >= 0 && correlation <= std::numeric_limits<uint32_t>::max();
}

void TraceState::Group(const importers::ProcessGroup& group) {
  const auto [known, is_new] = groups_.try_emplace(group.Number(), group);
  if (!is_new) known->second.Merge(group);
}

void TraceState::Api(std::span<const importers::ApiCall> calls) {
  int64_t process = 0;
  ProcessRecords* records = nullptr;
  for (const importers::ApiCall& call : calls) {
    totals_.on_host.Cover(call.start_ns, call.end_ns);
    recorded_.Cover(call.start_ns, call.end_ns);
    At(calls_, call.name).Add(call.end_ns - call.start_ns);
    const bool is_sync = IsSync(call.name);
    const bool has_correlation = CanJoin(call.correlation);
    if (!keep_records_ || (!has_correlation && !is_sync)) continue;
    if (records == nullptr || process != call.process) {
      process = call.process;
      const std::optional<uint16_t> number = ranks_.AddProcess(process);
      if (!number.has_value()) return RefuseRanks();
      records = &RecordsOf(*number);
    }
    if (is_sync)
      records->syncs.Add(
          {.start_ns = call.start_ns, .end_ns = call.end_ns, .name = call.name, .thread = call.thread});
    if (!has_correlation) continue;
    records->calls.Add({.start_ns = call.start_ns,
                        .end_ns = call.end_ns,
                        .correlation = static_cast<uint32_t>(call.correlation),
                        .thread = call.thread});
  }
  LimitMemory();
}

bool TraceState::ClassifySync(uint32_t name) {
  if (name >= sync_names_.size()) sync_names_.resize(std::max<size_t>(name + 1, sync_names_.size() * 2));
  const bool is_sync = IsSyncCall(names_[name]);
  sync_names_[name] = is_sync ? NameClass::kSync : NameClass::kOther;
  return is_sync;
}

Extent& TraceState::ExtentOf(uint16_t rank) {
  if (extents_.size() <= rank) extents_.resize(size_t{rank} + 1);
  return extents_[rank];
}

ProcessRecords& TraceState::RecordsOf(uint16_t process) {
  while (processes_.size() <= process) processes_.emplace_back(file_);
  return processes_[process];
}

void TraceState::LimitMemory() {
  if (processes_.size() < 2) return;  // two buffers of one run each
  while (true) {
    size_t all = 0;
    const auto size = [](const ProcessRecords& one) {
      return one.gpu.buffered_bytes() + one.calls.buffered_bytes() + one.syncs.buffered_bytes();
    };
    for (const ProcessRecords& one : processes_) all += size(one);
    if (all <= kMaxBufferedBytes) return;
    ProcessRecords& largest = *std::ranges::max_element(processes_, {}, size);
    largest.gpu.Spill();
    largest.calls.Spill();
    largest.syncs.Spill();
  }
}

void TraceState::Ranges(std::span<const importers::Range> ranges) {
  totals_.ranges += static_cast<int64_t>(ranges.size());
  for (const importers::Range& range : ranges) {
    totals_.on_host.Cover(range.start_ns, range.end_ns);
    recorded_.Cover(range.start_ns, range.end_ns);
  }
  if (keep_records_) steps_.Add(ranges);
}

void TraceState::Launch(const importers::MeasuredLaunch& launch,
                        std::span<const importers::MetricValue> metrics) {
  const std::optional<uint16_t> rank = ranks_.Add({launch.process, launch.device});
  if (!rank.has_value()) return RefuseRanks();
  RecordsOf(ranks_.ProcessOf(*rank));  // empty records: the launch was measured alone
  if (launch.duration_ns.has_value())
    At(kernels_, launch.name).Add(*launch.duration_ns);
  else
    ++totals_.others;
  metrics_.Add(launch, metrics, *rank, names_, ranks_);
}

std::vector<uint32_t> TraceState::MergeSums(const TraceState& other) {
  std::vector<uint32_t> ids = names_.AddAll(other.names_);
  totals_.Merge(other.totals_);
  separate_gpu_clock_ |= other.separate_gpu_clock_;
  MergeNamed(kernels_, other.kernels_, ids);
  MergeNamed(graphs_, other.graphs_, ids);
  MergeNamed(calls_, other.calls_, ids);
  JoinDropped();
  for (const auto& [number, known] : other.groups_) {
    const auto [mine, is_new] = groups_.try_emplace(number, known);
    if (!is_new) mine->second.Merge(known.group);
  }
  for (const auto& [key, copies] : other.copies_) copies_[key].Merge(copies);
  for (const auto& [key, sets] : other.sets_) sets_[key].Merge(sets);
  return ids;
}

Renumbering TraceState::Adopt(const TraceState& other) {
  Renumbering change{.names = MergeSums(other), .ranks = {}};
  if (!other.status_.has_value()) status_ = other.status_;
  recorded_.Merge(other.recorded_);
  steps_.Merge(other.steps_);
  communication_.Merge(other.communication_);
  messages_.Merge(other.messages_);
  for (const RankKey& rank : other.ranks_.ranks()) {
    const std::optional<uint16_t> id = ranks_.Add(rank);
    if (!id.has_value()) RefuseRanks();
    change.ranks.push_back(id.value_or(0));
  }
  for (size_t i = 0; i < other.extents_.size(); ++i)
    ExtentOf(change.ranks[i]).Cover(other.extents_[i].first_ns, other.extents_[i].last_ns);
  for (const int64_t process : other.ranks_.processes())
    if (!ranks_.AddProcess(process).has_value()) RefuseRanks();
  if (const size_t count = ranks_.processes().size(); count > 0) RecordsOf(static_cast<uint16_t>(count - 1));
  metrics_.Merge(other.metrics_, change.names, change.ranks);
  return change;
}

void TraceState::TakeRecords(TraceState&& other, Renumbering change) {
  if (!status_.has_value()) return;
  const auto shared = std::make_shared<const Renumbering>(std::move(change));
  for (size_t i = 0; i < other.processes_.size(); ++i) {
    ProcessRecords& records = RecordsOf(ranks_.AddProcess(other.ranks_.processes()[i]).value_or(0));
    records.gpu.Take(std::move(other.processes_[i].gpu), shared);
    records.calls.Take(std::move(other.processes_[i].calls), shared);
    records.syncs.Take(std::move(other.processes_[i].syncs), shared);
  }
}

void TraceState::Merge(TraceState&& other) {
  Renumbering change = Adopt(other);
  TakeRecords(std::move(other), std::move(change));
}

void TraceState::RefuseRanks() {
  status_ = Fail(ErrorCode::kUnsupported, "more than 65,535 processes, or processes on devices");
}

void TraceState::JoinDropped() {
  if (!names_.has_dropped()) return;
  for (auto* const named : {&kernels_, &graphs_, &calls_})
    for (uint32_t id = 0; id < named->size(); ++id) {
      const uint32_t kept = names_.Canonical(id);
      if (kept == id || (*named)[id].moments.count() == 0) continue;
      const Durations dropped = std::exchange((*named)[id], {});
      At(*named, kept).Merge(dropped);
    }
}

void TraceState::SortRecords() {
  for (ProcessRecords& one : processes_) {
    one.gpu.Sort();
    one.calls.Sort();
    one.syncs.Sort();
  }
}

Status TraceState::Finish() {
  names_.Finish();
  steps_.Finish();
  communication_.Finish();
  messages_.Finish();
  JoinDropped();
  TRY(status_);
  for (ProcessRecords& one : processes_) {
    TRY(one.gpu.Finish());
    TRY(one.calls.Finish());
    TRY(one.syncs.Finish());
  }
  return {};
}

}  // namespace gpusonde::analyze
