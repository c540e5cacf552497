// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analyze/recorded_time.h"
#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/stats/bounded_table.h"
#include "analyze/steps/step_candidates.h"
#include "analyze/timeline/rank_timeline.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

// Calls that waited for the GPU.
struct SyncSum {
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t busy_ns = 0;  // of a rank's device meanwhile; of calls at the same time, each has it

  void Merge(const SyncSum& other) {
    count += other.count;
    total_ns = AddSaturated(total_ns, other.total_ns);
    busy_ns = AddSaturated(busy_ns, other.busy_ns);
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(total_ns);
    archive(busy_ns);
    archive.Require(count >= 0 && busy_ns >= 0 && busy_ns <= total_ns);
  }
};

// Those of one name on one thread.
struct SyncRow {
  uint32_t name = 0;
  uint32_t thread = 0;
  SyncSum sum;

  void Merge(const SyncRow& other) { sum.Merge(other.sum); }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(thread);
    archive(sum);
  }
};

struct RankSyncs {
  static constexpr size_t kMaxRows = 4'096;

  std::vector<SyncRow> rows;
  SyncSum others;              // beyond kMaxRows
  std::vector<SyncSum> steps;  // by the step in which the calls began; empty without steps
  int64_t beyond_bound = 0;    // calls while kMaxOpen threads waited

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(rows);
    archive(others);
    archive(steps);
    archive(beyond_bound);
  }
};

// What a follower of waiting calls needs of names, by number.
struct SyncNames {
  std::span<const uint64_t> hashes;
  std::span<const uint32_t> canonical;  // empty if no name was dropped
};

// Follows the calls of a process along the timeline of one of its ranks. How long the device was busy in a
// call is the difference of its busy time until the call's end and until its start, so a call needs no events
// of its own, and memory only while it is open.
class SyncFollower {
 public:
  static constexpr size_t kMaxOpen = 256;

  // `clock` makes times of the timeline from those of the runs and `gpu_ahead_ns`; `steps` are by the host's
  // clock and converted already. All must outlive it, except for `clock` and `names`, which are copied.
  SyncFollower(std::span<const Run<SyncRecord, Renumbering>> runs, const SyncNames& names,
               const ClockWithout& clock, const Steps& steps, int64_t gpu_ahead_ns);

  // Before an event at this time is added to the timeline; in order of time.
  void Advance(int64_t time_ns, const RankTimeline& before) {
    if (next_ns_ <= time_ns) AdvanceTo(time_ns, before);
  }
  // Errors: those of temporary files.
  Result<RankSyncs> Finish(const RankTimeline& timeline) &&;

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Call {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t busy_before_ns = 0;
    uint32_t name = 0;
    uint32_t thread = 0;
    size_t step = 0;
  };

  void AdvanceTo(int64_t time_ns, const RankTimeline& before);
  void ReadNext();
  void Open(const RankTimeline& before);
  void Close(size_t index, const RankTimeline& before);
  size_t StepOf(int64_t time_ns);

  Merged<SyncRecord, BySyncStart, Renumbering> calls_;
  SyncNames names_;
  ClockWithout clock_;
  const Steps& steps_;
  int64_t gpu_ahead_ns_;
  Call next_;                      // if any is left, at next_.start_ns, else kNever
  int64_t first_end_ns_ = kNever;  // of open_
  int64_t next_ns_ = kNever;       // of both
  size_t next_step_ = 0;           // the first that starts after the last call
  std::vector<Call> open_;
  BoundedTable<SyncRow> rows_{RankSyncs::kMaxRows};
  RankSyncs result_;
};

}  // namespace gpusonde::analyze
