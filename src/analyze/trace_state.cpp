// SPDX-License-Identifier: Apache-2.0
#include "analyze/trace_state.h"

#include <numeric>

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
}

int64_t TraceTotals::Dropped() const { return std::accumulate(dropped.begin(), dropped.end(), int64_t{0}); }

void TraceState::Gpu(std::span<const importers::GpuEvent> events) {
  for (const importers::GpuEvent& event : events) {
    const int64_t duration_ns = event.end_ns - event.start_ns;
    totals_.Cover(event.start_ns, event.end_ns);
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
}

void TraceState::Api(std::span<const importers::ApiCall> calls) {
  for (const importers::ApiCall& call : calls) {
    totals_.Cover(call.start_ns, call.end_ns);
    At(calls_, call.name).Add(call.end_ns - call.start_ns);
  }
}

void TraceState::Ranges(std::span<const importers::Range> ranges) {
  totals_.ranges += static_cast<int64_t>(ranges.size());
  for (const importers::Range& range : ranges) totals_.Cover(range.start_ns, range.end_ns);
}

void TraceState::Merge(const TraceState& other) {
  const std::vector<uint32_t> ids = names_.AddAll(other.names_);
  totals_.Merge(other.totals_);
  MergeNamed(kernels_, other.kernels_, ids);
  MergeNamed(calls_, other.calls_, ids);
  for (const auto& [key, copies] : other.copies_) copies_[key].Merge(copies);
  for (const auto& [key, sets] : other.sets_) sets_[key].Merge(sets);
}

}  // namespace gpusonde::analyze
