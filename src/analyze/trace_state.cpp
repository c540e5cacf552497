// SPDX-License-Identifier: Apache-2.0
#include "analyze/trace_state.h"

#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace gpusonde::analyze {
namespace {

Durations& At(std::vector<Durations>& all, uint32_t name) {
  if (name >= all.size()) all.resize(std::max<size_t>(name + 1, all.size() * 2));
  return all[name];
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
  for (size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  first_ns = std::min(first_ns, other.first_ns);
  last_ns = std::max(last_ns, other.last_ns);
  first_gpu_ns = std::min(first_gpu_ns, other.first_gpu_ns);
  last_gpu_ns = std::max(last_gpu_ns, other.last_gpu_ns);
}

int64_t TraceTotals::Dropped() const { return std::accumulate(dropped.begin(), dropped.end(), int64_t{0}); }

void TraceState::Summarize(const importers::GpuEvent& event) {
  const int64_t duration_ns = event.end_ns - event.start_ns;
  totals_.Cover(event.start_ns, event.end_ns);
  totals_.first_gpu_ns = std::min(totals_.first_gpu_ns, event.start_ns);
  totals_.last_gpu_ns = std::max(totals_.last_gpu_ns, event.end_ns);
  switch (event.work) {
    case importers::GpuWork::kKernel:
      At(kernels_, event.name).Add(duration_ns);
      break;
    case importers::GpuWork::kMemcpy:
      copies_[{event.copy, event.source, event.target}].Add(duration_ns, event.bytes);
      break;
    case importers::GpuWork::kMemset:
      sets_[{event.copy, event.source, event.target}].Add(duration_ns, event.bytes);
      break;
  }
}

void TraceState::Gpu(std::span<const importers::GpuEvent> events) {
  for (const importers::GpuEvent& event : events) {
    const std::optional<uint16_t> rank = ranks_.Add({event.process, event.device});
    if (!rank.has_value()) return RefuseRanks();
    Summarize(event);
    if (!keep_records_) continue;
    const bool has_correlation = event.correlation != importers::kNoCorrelation;
    gpu_runs_.Add({.start_ns = event.start_ns,
                   .end_ns = event.end_ns,
                   .correlation = has_correlation ? static_cast<uint32_t>(event.correlation) : 0,
                   .stream = event.stream,
                   .name = event.name,
                   .shape = event.shape,
                   .bytes = static_cast<uint32_t>(std::min<int64_t>(event.bytes, std::numeric_limits<uint32_t>::max())),
                   .rank = *rank,
                   .work = event.work,
                   .has_correlation = has_correlation});
  }
}

void TraceState::Api(std::span<const importers::ApiCall> calls) {
  for (const importers::ApiCall& call : calls) {
    totals_.Cover(call.start_ns, call.end_ns);
    At(calls_, call.name).Add(call.end_ns - call.start_ns);
    if (!keep_records_ || call.correlation == importers::kNoCorrelation) continue;
    const std::optional<uint16_t> process = ranks_.AddProcess(call.process);
    if (!process.has_value()) return RefuseRanks();
    call_runs_.Add({.start_ns = call.start_ns,
                    .end_ns = call.end_ns,
                    .correlation = static_cast<uint32_t>(call.correlation),
                    .process = *process});
  }
}

void TraceState::Ranges(std::span<const importers::Range> ranges) {
  totals_.ranges += static_cast<int64_t>(ranges.size());
  for (const importers::Range& range : ranges) totals_.Cover(range.start_ns, range.end_ns);
}

std::vector<uint32_t> TraceState::MergeSums(const TraceState& other) {
  std::vector<uint32_t> ids = names_.AddAll(other.names_);
  totals_.Merge(other.totals_);
  MergeNamed(kernels_, other.kernels_, ids);
  MergeNamed(calls_, other.calls_, ids);
  for (const auto& [key, copies] : other.copies_) copies_[key].Merge(copies);
  for (const auto& [key, sets] : other.sets_) sets_[key].Merge(sets);
  return ids;
}

void TraceState::Merge(TraceState&& other) {
  auto change = std::make_shared<Renumbering>();
  change->names = MergeSums(other);
  if (!other.status_.has_value()) status_ = other.status_;
  for (const int64_t process : other.ranks_.processes()) {
    const std::optional<uint16_t> id = ranks_.AddProcess(process);
    if (!id.has_value()) return RefuseRanks();
    change->processes.push_back(*id);
  }
  for (const RankKey& rank : other.ranks_.ranks()) {
    const std::optional<uint16_t> id = ranks_.Add(rank);
    if (!id.has_value()) return RefuseRanks();
    change->ranks.push_back(*id);
  }
  gpu_runs_.Take(std::move(other.gpu_runs_), change);
  call_runs_.Take(std::move(other.call_runs_), change);
}

void TraceState::RefuseRanks() {
  status_ = Fail(ErrorCode::kUnsupported, "more than 65535 processes, or processes on devices, in one trace");
}

Status TraceState::Finish() {
  if (!status_.has_value()) return status_;
  TRY(gpu_runs_.Finish());
  return call_runs_.Finish();
}

}  // namespace gpusonde::analyze
