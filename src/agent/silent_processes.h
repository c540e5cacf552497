// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/signals.h"

namespace gpusonde::agent {

// Finds profiled processes with a thread that is stopped, or blocked in the kernel. The kernel reports what a
// thread waited for only when it goes on, so the state of threads that have done nothing for two seconds is
// read from /proc. Any thread counts: backward passes and readers of data have threads of their own, for
// which the first one waits. Needs no privileges. Not thread-safe.
class SilentProcesses {
 public:
  // Call when a thread of a process did something. `now_ns`: CLOCK_MONOTONIC, as below.
  void NoteActivity(int32_t pid, int32_t tid, int64_t now_ns);

  // Once a second, appends `process.stopped` or `process.blocked` for the time since the last reading of each
  // process with a silent thread in that state. Reads at most 64 first threads and 64 others: those that were
  // in such a state at the last reading, and the rest in turn. `identify` maps a pid to a process;
  // `stops_known` says of which ones another part writes `process.stopped`.
  void Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
             const std::function<std::optional<Id128>(int32_t pid)>& identify,
             const std::function<bool(int32_t pid)>& stops_known,
             model::BatchBuilder<decltype(model::kSignals)>& rows);

 private:
  struct Thread {
    int32_t pid = 0, tid = 0;
    auto operator<=>(const Thread&) const = default;
  };
  struct State {
    int64_t active_ns = 0;
    bool is_halted = false;  // at the last reading
  };

  using Threads = std::map<Thread, State>;
  struct Turn {
    Threads threads;
    Thread last;  // read last, of those that weren't halted: the next turn begins behind it
  };

  static std::vector<Thread> NextOf(Turn& turn, int64_t now_ns);

  Turn first_, others_;  // a process has one first thread, and perhaps thousands of others
  int64_t read_ns_ = 0;  // 0: never
};

}  // namespace gpusonde::agent
