// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/rank_timeline.h"

#include <algorithm>

namespace gpusonde::analyze {
namespace {

// HTA's documents say 30 ns, its code uses 30 µs; nsys's gpu_gaps has no such class.
constexpr int64_t kBackToBackNs = 30'000;

void AddGap(IdleTime& idle, const LaunchedRecord& record, int64_t work_ended_ns) {
  const int64_t gap_ns = record.gpu.start_ns - work_ended_ns;
  if (record.has_call && record.call_start_ns > work_ended_ns)
    idle.host_ns += gap_ns;
  else if (gap_ns < kBackToBackNs)
    idle.back_to_back_ns += gap_ns;
  else if (record.has_call)
    idle.device_ns += gap_ns;
  else
    idle.unknown_ns += gap_ns;
}

}  // namespace

void RankTimeline::Add(const LaunchedRecord& record, bool is_communication) {
  const GpuRecord& event = record.gpu;
  if (events_++ == 0)
    first_ns_ = event.start_ns;
  else if (event.start_ns > all_.covered_to())
    AddGap(idle_, record, all_.covered_to());
  RecentStream& recent = recent_streams_[event.stream % recent_streams_.size()];
  if (!recent.known || recent.stream != event.stream) {
    const auto [place, is_new] = stream_places_.try_emplace(event.stream, stream_ends_.size());
    if (is_new) stream_ends_.push_back(event.start_ns);
    recent = {.stream = event.stream, .known = true, .place = place->second};
  }
  int64_t& stream_end_ns = stream_ends_[recent.place];
  if (event.start_ns > stream_end_ns) AddGap(stream_gaps_, record, stream_end_ns);
  stream_end_ns = std::max(stream_end_ns, event.end_ns);
  if (has_graphs_ || event.work == importers::GpuWork::kGraph) AddWithGraphs(event);
  all_.Add(event.start_ns, event.end_ns);
  if (event.work == importers::GpuWork::kKernel) {
    kernels_.Add(event.start_ns, event.end_ns);
    (is_communication ? comm_ : compute_).Add(event.start_ns, event.end_ns);
  } else if (event.work != importers::GpuWork::kGraph) {
    transfers_.Add(event.start_ns, event.end_ns);
  }
  if (!record.has_call) return;
  latency_.Add(event.start_ns - record.call_start_ns);
  delay_.Add(std::max<int64_t>(0, event.start_ns - record.call_end_ns));
}

void RankTimeline::AddWithGraphs(const GpuRecord& event) {
  if (!has_graphs_) outside_graphs_ = all_;
  has_graphs_ = true;
  const bool is_graph = event.work == importers::GpuWork::kGraph;
  (is_graph ? graphs_ : outside_graphs_).Add(event.start_ns, event.end_ns);
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
