// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "analyze/records.h"
#include "analyze/timeline/concurrency.h"
#include "analyze/timeline/coverage.h"
#include "analyze/timeline/idle_time.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {

// Work of these kinds; copies are in the order of importers::CopyKind. Of a graph that was traced as a whole
// it isn't known what ran in it.
enum class WorkKind : uint8_t {
  kCompute,
  kCommunication,
  kUnknownCopy,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeerToPeer,
  kHostToHost,
  kMemset,
  kGraph
};
inline constexpr size_t kWorkKinds = 10;

// What a device did until some time, ns.
struct TimelineParts {
  int64_t busy_ns = 0;
  int64_t kernels_ns = 0;
  int64_t compute_ns = 0;
};

// The timeline of a rank's device; add events by start time.
class RankTimeline {
 public:
  void Add(const LaunchedRecord& record, bool is_communication);

  int64_t events() const { return events_; }
  int64_t first_ns() const { return first_ns_; }
  // The latest end so far.
  int64_t covered_to() const { return all_.covered_to(); }
  int64_t span_ns() const { return events_ > 0 ? all_.covered_to() - first_ns_ : 0; }
  int64_t busy_ns() const { return all_.length_ns(); }
  int64_t compute_ns() const { return Of(WorkKind::kCompute).length_ns(); }
  int64_t comm_ns() const { return Of(WorkKind::kCommunication).length_ns(); }
  // Of copies and sets of all kinds.
  int64_t transfer_ns() const { return transfers_.length_ns(); }
  // Of communication and computation.
  int64_t overlap_ns() const { return SharedNs(WorkKind::kCommunication, WorkKind::kCompute); }
  // For how long work of a kind runs.
  int64_t KindNs(WorkKind kind) const { return Of(kind).length_ns(); }
  // For how long work of both kinds runs; the later kind first.
  int64_t SharedNs(WorkKind later, WorkKind earlier) const {
    return shared_ns_[PairOf(static_cast<size_t>(later), static_cast<size_t>(earlier))];
  }
  // Of copies and sets with kernels: |A ∩ B| = |A| + |B| − |A ∪ B|.
  int64_t transfer_overlap_ns() const {
    return transfer_ns() + kernels_.length_ns() - (has_graphs_ ? outside_graphs_ : all_).length_ns();
  }
  // Of graphs that were traced as a whole: neither computation nor communication, as that is unknown.
  int64_t graph_ns() const { return Of(WorkKind::kGraph).length_ns(); }

  // Until a time that is not before the start of the event added last.
  TimelineParts PartsUntil(int64_t time_ns) const {
    return {all_.LengthUntil(time_ns), kernels_.LengthUntil(time_ns),
            Of(WorkKind::kCompute).LengthUntil(time_ns)};
  }

  // Like busy_ns, until such a time.
  int64_t busy_until_ns(int64_t time_ns) const { return all_.LengthUntil(time_ns); }

  // Times in which no stream had work. Sums to span − busy.
  const IdleTime& idle() const { return idle_; }
  // For each stream alone, summed: between the latest end on it and its next start.
  IdleTime stream_gaps() const { return streams_.Gaps(); }
  const StreamTable& streams() const { return streams_; }
  const Concurrency& concurrency() const { return concurrency_; }

  // Start on the GPU − start of the call. Negative where clocks disagree.
  const Durations& launch_latency() const { return latency_; }
  // Start on the GPU − end of the call, at least 0.
  const Durations& queue_delay() const { return delay_; }

  // Copies the results without what is only needed to add events.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(all_);
    archive.Require(all_.length_ns() >= 0, "ranks.busy_ns");
    for (Coverage& kind : kinds_) {
      archive(kind);
      archive.Require(IsPart(kind), "concurrency.kind_times.busy_ns");
    }
    for (size_t later = 0; later < kWorkKinds; ++later)
      for (size_t earlier = 0; earlier < later; ++earlier) {
        int64_t& ns = shared_ns_[PairOf(later, earlier)];
        archive(ns);
        archive.Require(ns >= 0 && ns <= kinds_[later].length_ns() && ns <= kinds_[earlier].length_ns(),
                        "concurrency.kinds.shared_ns");
      }
    archive(kernels_);
    archive.Require(IsPart(kernels_), "ranks.compute_ns");
    archive(transfers_);
    archive.Require(IsPart(transfers_), "ranks.transfer_ns");
    archive(outside_graphs_);
    archive.Require(IsPart(outside_graphs_), "ranks.graph_ns");
    archive(has_graphs_);
    archive(events_);
    archive(first_ns_);
    archive.Require(events_ >= 0, "ranks.events");
    archive(idle_);
    archive(streams_);
    archive(concurrency_);
    archive(latency_);
    archive(delay_);
  }

 private:
  // Whether that is possible of some of the device's work.
  bool IsPart(const Coverage& some) const {
    return some.length_ns() >= 0 && some.length_ns() <= all_.length_ns();
  }
  const Coverage& Of(WorkKind kind) const { return kinds_[static_cast<size_t>(kind)]; }
  void AddShared(const GpuRecord& event, size_t kind);

  Coverage all_, kernels_, transfers_;
  std::array<Coverage, kWorkKinds> kinds_;
  uint32_t active_kinds_ = 0;  // as bits: those whose work may go on, if that of any does
  std::array<int64_t, PairOf(kWorkKinds, 0)> shared_ns_ = {};
  int64_t events_ = 0;
  int64_t first_ns_ = 0;
  IdleTime idle_;
  StreamTable streams_;
  Concurrency concurrency_;
  Durations latency_, delay_;
  Coverage outside_graphs_;  // all but graphs, once there is one; until then that is all_
  bool has_graphs_ = false;
};

// The number of launches of a rank that have begun and not reached the GPU yet. Add changes by time; at equal
// times, joins come first.
class QueueLength {
 public:
  void Join(int64_t time_ns) { Change(time_ns, 1); }
  void Leave(int64_t time_ns) { Change(time_ns, -1); }

  int64_t length() const { return length_; }
  int64_t max() const { return max_; }
  // Averages over its changes and over time; 0 without any.
  double MeanOverChanges() const;
  double MeanOverTime() const;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(length_);
    archive(max_);
    archive(changes_);
    archive(sum_);
    archive(area_);
    archive(first_ns_);
    archive(last_ns_);
  }

 private:
  void Change(int64_t time_ns, int64_t by);

  int64_t length_ = 0;
  int64_t max_ = 0;
  int64_t changes_ = 0;
  Int128 sum_ = 0;
  Int128 area_ = 0;  // length · ns
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace gpusonde::analyze
