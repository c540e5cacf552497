// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/gpu_channel.h"
#include "agent/gpu_rows.h"
#include "agent/process_table.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "model/drops.h"
#include "sources/cupti/gpu_events.h"
#include "sources/perf/event.h"

namespace gpusonde::agent {

// The programs with our inject library: attaches to them, turns what they report into rows, and finishes
// their rows after they have ended. Not thread-safe.
class GpuPrograms {
 public:
  // `events` is empty where GPU work can't be profiled; then nothing has an effect. With `with_stacks`, the
  // kernel side takes the stacks of launches. The references must outlive it.
  GpuPrograms(std::optional<cupti::GpuEvents> events, bool with_stacks, ProcessTable& processes,
              GpuRows& rows, model::DropCounts& drops)
      : events_(std::move(events)),
        with_stacks_(with_stacks),
        processes_(processes),
        rows_(rows),
        drops_(drops) {}

  // The source of their events; null where GPU work can't be profiled.
  sources::Source* source() { return events_.has_value() ? &*events_ : nullptr; }

  // For a program about to be started.
  Result<GpuChannel> MakeChannel();
  // Attaches to that program between fork and exec.
  Status AttachBeforeExec(int32_t pid);

  // Attaches to a process for files that it mapped before profiling started.
  void AttachMapped(int32_t pid);
  // Applies one event, after the process table: attaches to a process that maps the library, and counts one
  // that can't be received.
  void Apply(const perf::SidebandEvent& event);

  // Call before the source is drained.
  void BeginRound() {
    now_ns_ = MonotonicNow();
    last_pid_ = 0;
  }
  // Writes what needs no stack as rows. False, and nothing is done, for a call or graph node with a stack,
  // which has to be resolved first: in its place in time, so that one of the future is dropped and counted.
  bool Ingest(const cupti::Event& event);
  // Whether any GPU work was ingested since the last call.
  bool DrainArrived() { return std::exchange(work_arrived_, false); }

  // The processes that began to report since the last EnableStacks. Describe them to the kernel first.
  const std::vector<int32_t>& beginning() const { return beginning_; }
  void EnableStacks();

  // Call when a process has ended, after the process table; what it sent may still be in the source's buffer.
  void End(int32_t pid);
  // How many have ended and are not finished.
  size_t ended() const { return ended_.size(); }
  // Finishes the first `count` of these, after the buffer was drained.
  void Finish(size_t count);

  // Wakes the collector for the first work after this time (CLOCK_MONOTONIC).
  void WakeAfter(int64_t time_ns) {
    if (events_.has_value()) events_->WakeAfter(time_ns);
  }

 private:
  void Attach(int32_t pid, const std::string& path);

  std::optional<cupti::GpuEvents> events_;
  bool with_stacks_;
  ProcessTable& processes_;
  GpuRows& rows_;
  model::DropCounts& drops_;
  std::unordered_map<int32_t, Id128> reporting_;  // running ones that reported GPU work, by pid
  std::vector<int32_t> beginning_;
  std::vector<std::pair<int32_t, Id128>> ended_;
  int64_t now_ns_ = 0;    // of this round
  int32_t last_pid_ = 0;  // in this round: hundreds of events in a row come from one process
  Id128 last_process_;
  bool work_arrived_ = false;
};

}  // namespace gpusonde::agent
