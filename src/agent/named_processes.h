// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/processes.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::agent {

// Maps pids in host signals to processes, and writes a row for each process that has none. Signals may arrive
// after a process has ended, or name one that no other source reports. Not thread-safe.
class NamedProcesses {
 public:
  // Answers what the kernel knows of a pid that is no longer in /proc.
  using LookUp = std::function<std::optional<ebpf::HostSignals::Other>(int32_t pid)>;

  explicit NamedProcesses(LookUp look_up) : look_up_(std::move(look_up)) {}

  // Sets the source and clock offset of rows from now on.
  void SetSource(const Id128& source, int64_t epoch_offset_ns) {
    source_ = source;
    epoch_offset_ns_ = epoch_offset_ns;
  }

  // Notes the processes that others have written rows for.
  void Ingest(const model::Batch& batch);

  // Call once per round: pids are looked up again, and processes that ended a minute ago are forgotten.
  void BeginRound();

  // The process that has this pid now; if it has ended, the one that had it. nullopt if nothing is known of
  // it.
  std::optional<Id128> Identify(int32_t pid);

  // The rows since the last call.
  std::optional<model::Batch> DrainRows();

  // Makes the next rows repeat every process that they refer to, as a new store needs them.
  void Rewrite() { written_.clear(); }

 private:
  struct Known {
    int64_t start_ticks = 0;
    Id128 id;
  };
  struct Ended {
    int64_t ended_ns = 0;  // CLOCK_MONOTONIC
    int32_t pid = 0;
    Id128 id;
  };
  void Write(int32_t pid, const Known& process, const std::string& name);

  LookUp look_up_;
  Id128 source_;
  int64_t epoch_offset_ns_ = 0;
  std::string boot_id_;
  std::unordered_map<int32_t, Known> known_;                      // by pid
  std::unordered_map<int32_t, std::optional<Id128>> identified_;  // in this round
  std::map<Id128, std::string> written_;                          // names of processes that have a row
  std::deque<Ended> ended_;                                       // by time
  model::BatchBuilder<decltype(model::kProcesses)> rows_{model::kProcesses};
};

}  // namespace gpusonde::agent
