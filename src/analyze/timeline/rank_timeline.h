// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "analyze/records.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {

// The length of the union of intervals, added by start.
class Coverage {
 public:
  void Add(int64_t start_ns, int64_t end_ns) {
    if (end_ns <= covered_to_) return;
    length_ns_ += end_ns - std::max(start_ns, covered_to_);
    covered_to_ = end_ns;
  }
  int64_t length_ns() const { return length_ns_; }
  // Of the part before this time, which is not before the start of the interval added last.
  int64_t LengthUntil(int64_t time_ns) const {
    return length_ns_ - (covered_to_ > time_ns ? covered_to_ - time_ns : 0);
  }
  // The latest end so far; the smallest number before the first.
  int64_t covered_to() const { return covered_to_; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(covered_to_);
    archive(length_ns_);
  }

 private:
  int64_t covered_to_ = std::numeric_limits<int64_t>::min();
  int64_t length_ns_ = 0;
};

// Idle time by what ended it. `host`: the call that launched the next event began only after the previous
// work had ended. `back_to_back`: otherwise, if under 30 µs, which the device needs between two events.
// `device`: otherwise; it waited for something else, such as another stream. `unknown`: no call is known.
struct IdleTime {
  int64_t host_ns = 0;
  int64_t back_to_back_ns = 0;
  int64_t device_ns = 0;
  int64_t unknown_ns = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(host_ns);
    archive(back_to_back_ns);
    archive(device_ns);
    archive(unknown_ns);
  }
};

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
  int64_t compute_ns() const { return compute_.length_ns(); }
  int64_t comm_ns() const { return comm_.length_ns(); }
  int64_t transfer_ns() const { return transfers_.length_ns(); }
  // Of communication and computation: |A ∩ B| = |A| + |B| − |A ∪ B|.
  int64_t overlap_ns() const { return compute_ns() + comm_ns() - kernels_.length_ns(); }
  // Of copies and sets with kernels.
  int64_t transfer_overlap_ns() const {
    return transfer_ns() + kernels_.length_ns() - (has_graphs_ ? outside_graphs_ : all_).length_ns();
  }
  // Of graphs that were traced as a whole: neither computation nor communication, as that is unknown.
  int64_t graph_ns() const { return graphs_.length_ns(); }

  // Until a time that is not before the start of the event added last.
  TimelineParts PartsUntil(int64_t time_ns) const {
    return {all_.LengthUntil(time_ns), kernels_.LengthUntil(time_ns), compute_.LengthUntil(time_ns)};
  }

  // Like busy_ns, until such a time.
  int64_t busy_until_ns(int64_t time_ns) const { return all_.LengthUntil(time_ns); }

  // Times in which no stream had work. Sums to span − busy.
  const IdleTime& idle() const { return idle_; }
  // For each stream alone, summed: between the latest end on it and its next start.
  const IdleTime& stream_gaps() const { return stream_gaps_; }

  // Start on the GPU − start of the call. Negative where clocks disagree.
  const Durations& launch_latency() const { return latency_; }
  // Start on the GPU − end of the call, at least 0.
  const Durations& queue_delay() const { return delay_; }

  // Copies the results without the ends of streams, which are only needed to add events.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(all_);
    archive(compute_);
    archive(comm_);
    archive(kernels_);
    archive(transfers_);
    archive(graphs_);
    archive(outside_graphs_);
    archive(has_graphs_);
    archive(events_);
    archive(first_ns_);
    archive(idle_);
    archive(stream_gaps_);
    archive(latency_);
    archive(delay_);
  }

 private:
  // In ranks with graphs, before all_.
  void AddWithGraphs(const GpuRecord& event);

  Coverage all_, compute_, comm_, kernels_, transfers_;
  int64_t events_ = 0;
  int64_t first_ns_ = 0;
  IdleTime idle_, stream_gaps_;
  struct RecentStream {
    uint32_t stream = 0;
    bool known = false;
    size_t place = 0;
  };
  // The latest ends of the streams' events, and where a stream's is; a few streams alternate.
  std::vector<int64_t> stream_ends_;
  std::unordered_map<uint32_t, size_t> stream_places_;
  std::array<RecentStream, 16> recent_streams_;
  Durations latency_, delay_;
  Coverage graphs_;
  Coverage outside_graphs_;  // all but graphs, once there is one; until then that is all_
  bool has_graphs_ = false;
};

// The number of launches of a rank that have begun and not reached the GPU yet. Add changes by time; at equal
// times, joins come first.
class QueueLength {
 public:
  void Join(int64_t time_ns) { Change(time_ns, 1); }
  void Leave(int64_t time_ns) { Change(time_ns, -1); }

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
