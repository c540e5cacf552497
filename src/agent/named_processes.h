// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/processes.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::agent {

// Maps pids in host signals to processes, and writes a row for each process that has none. Signals may arrive
// after a process has ended, or name one that no other source reports. If no other source reports the end of
// a process that has a row, writes that too, so that the other stages forget the process. Not thread-safe.
class NamedProcesses {
 public:
  // Answers what the kernel knows of a pid that is no longer in /proc.
  using LookUp = std::function<std::optional<ebpf::HostSignals::Other>(int32_t pid)>;

  explicit NamedProcesses(LookUp look_up) : look_up_(std::move(look_up)) {}

  // Sets the source and clock offset of rows from now on.
  void SetSource(const Id128& source, int64_t epoch_offset_ns);

  // Notes the processes that others have written rows for; call after BeginRound.
  void Ingest(const model::Batch& batch);

  // Call once per round with CLOCK_MONOTONIC: pids are looked up again, ends are noticed every kCheckNs, and
  // processes that ended a minute ago are forgotten.
  void BeginRound(int64_t now_ns);

  // The process that has this pid now; if it has ended, the one that had it. nullopt if nothing is known of
  // it.
  std::optional<Id128> Identify(int32_t pid);

  // The rows since the last call.
  std::optional<model::Batch> DrainRows();

  // Makes the next rows repeat every process that they refer to, as a new store needs them.
  void Rewrite();

  // 0.4 ms of CPU time for 1,000 running processes.
  static constexpr int64_t kCheckNs = 10'000'000'000;

  // How many processes are remembered.
  size_t size() const { return processes_.size(); }

 private:
  struct Known {
    model::Process row;      // as last written; once it has ended, without texts other than its name
    bool written = false;    // to the current store
    int64_t missing_ns = 0;  // CLOCK_MONOTONIC, when it was first found to have ended; 0: it runs
    bool ended = false;      // its end was written
  };
  struct Ended {
    int64_t ended_ns = 0;  // CLOCK_MONOTONIC
    Id128 id;
  };
  void Write(const Id128& id, Known& process, const std::string& name);
  void WriteEnds();
  bool Runs(const Id128& id, const Known& process) const;
  void End(const Id128& id, Known& process);

  LookUp look_up_;
  Id128 source_;
  int64_t epoch_offset_ns_ = 0;
  std::string boot_id_;
  int64_t now_ns_ = 0;                                            // of this round
  int64_t checked_ns_ = 0;                                        // when ends were last looked for
  std::unordered_map<Id128, Known> processes_;                    // that run, or ended a minute ago at most
  std::unordered_map<int32_t, Id128> by_pid_;                     // the newest of them
  std::unordered_map<int32_t, std::optional<Id128>> identified_;  // in this round
  std::deque<Ended> ended_;                                       // by time
  model::BatchBuilder<decltype(model::kProcesses)> rows_{model::kProcesses};
};

}  // namespace gpusonde::agent
