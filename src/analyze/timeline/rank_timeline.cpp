// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/rank_timeline.h"

#include <algorithm>
#include <bit>

namespace gpusonde::analyze {
namespace {

WorkKind KindOf(const GpuRecord& event, bool is_communication) {
  switch (event.work) {
    case importers::GpuWork::kKernel:
      return is_communication ? WorkKind::kCommunication : WorkKind::kCompute;
    case importers::GpuWork::kMemcpy:
      return static_cast<WorkKind>(static_cast<size_t>(WorkKind::kUnknownCopy) +
                                   static_cast<size_t>(CopyOf(event.name)));
    case importers::GpuWork::kMemset:
      return WorkKind::kMemset;
    case importers::GpuWork::kGraph:
      break;
  }
  return WorkKind::kGraph;
}

}  // namespace

void RankTimeline::Add(const LaunchedRecord& record, bool is_communication) {
  const GpuRecord& event = record.gpu;
  const WorkKind kind = KindOf(event, is_communication);
  const bool alone = event.start_ns >= all_.covered_to();
  if (events_++ == 0)
    first_ns_ = event.start_ns;
  else if (event.start_ns > all_.covered_to())
    idle_.Add(record, all_.covered_to());
  if (alone)
    active_kinds_ = 1u << static_cast<size_t>(kind);
  else
    AddShared(event, static_cast<size_t>(kind));
  streams_.Add(record, alone);
  concurrency_.Add(event.start_ns, event.end_ns);
  if (kind == WorkKind::kGraph && !has_graphs_) {
    outside_graphs_ = all_;
    has_graphs_ = true;
  }
  all_.Add(event.start_ns, event.end_ns);
  kinds_[static_cast<size_t>(kind)].Add(event.start_ns, event.end_ns);
  if (event.work == importers::GpuWork::kKernel) kernels_.Add(event.start_ns, event.end_ns);
  if (!importers::IsNamed(event.work)) transfers_.Add(event.start_ns, event.end_ns);
  if (has_graphs_ && kind != WorkKind::kGraph) outside_graphs_.Add(event.start_ns, event.end_ns);
  if (!record.has_call) return;
  latency_.Add(event.start_ns - record.call_start_ns);
  delay_.Add(std::max<int64_t>(0, event.start_ns - record.call_end_ns));
}

void RankTimeline::AddShared(const GpuRecord& event, size_t kind) {
  for (uint32_t others = active_kinds_ & ~(1u << kind); others != 0; others &= others - 1) {
    const auto other = static_cast<size_t>(std::countr_zero(others));
    // Until there is more of it, nothing later runs beside it.
    if (kinds_[other].covered_to() <= event.start_ns)
      active_kinds_ &= ~(1u << other);
    else
      shared_ns_[PairOf(std::max(kind, other), std::min(kind, other))] +=
          SharedGrowth(event.start_ns, event.end_ns, kinds_[kind], kinds_[other]);
  }
  active_kinds_ |= 1u << kind;
}

void QueueLength::Change(int64_t time_ns, int64_t by) {
  if (changes_++ == 0) first_ns_ = last_ns_ = time_ns;
  area_ += Int128{length_} * (time_ns - last_ns_);
  last_ns_ = time_ns;
  length_ += by;
  max_ = std::max(max_, length_);
  sum_ += length_;
}

double QueueLength::MeanOverChanges() const {
  return changes_ > 0 ? static_cast<double>(sum_) / static_cast<double>(changes_) : 0;
}

double QueueLength::MeanOverTime() const {
  return last_ns_ > first_ns_ ? static_cast<double>(area_) / static_cast<double>(last_ns_ - first_ns_) : 0;
}

}  // namespace gpusonde::analyze
