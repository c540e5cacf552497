// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "agent/process_table.h"
#include "base/id128.h"
#include "base/time.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/perf/sideband.h"
#include "symbols/binary_table.h"
#include "symbols/file_reader.h"

namespace gpusonde::agent {

// Describes processes to the eBPF programs that unwind stacks: the unwind tables of mapped files, and where
// the Python interpreter is. Not thread-safe.
class StackDescriber {
 public:
  // The references must outlive the describer.
  StackDescriber(ebpf::StackTables& tables, symbols::FileReader& files, ProcessTable& processes)
      : tables_(tables), files_(files), processes_(processes) {}

  // Call after an event was applied to the process table: forks share a description, exits remove it.
  void Follow(const perf::SidebandEvent& event);

  // Removes a process whose exit event was lost.
  void Forget(int32_t pid) { tables_.ForgetProcess(pid); }

  // Updates the description of a process that was sampled, if it has changed. Compiles the tables of files
  // that are seen for the first time: 2 ms for libc, 90 ms for libLLVM. Describe a process that IsWaiting for
  // some files again when FileReader has more answers.
  void Describe(Process& process);
  bool IsWaiting(const Process& process) const { return process.waits_for_files; }

 private:
  // The file, if the kernel has its table. Sets Process::waits_for_files.
  std::optional<Id128> FileWithTable(const symbols::BinaryTable::Binary& binary, Process& process);

  // Files that are not to be read again before a time (CLOCK_MONOTONIC), or ever, however often they are
  // mapped: those whose unwind tables are malformed or too large, and for a while those that found no room.
  static constexpr size_t kMaxUnusable = 10'000;  // then all are forgotten
  static constexpr int64_t kRetryNs = 30 * kNanosPerSecond;
  std::unordered_map<Id128, int64_t> unusable_;
  std::unordered_set<int32_t> warned_users_;  // those for which a lack of room was logged

  ebpf::StackTables& tables_;
  symbols::FileReader& files_;
  ProcessTable& processes_;
};

}  // namespace gpusonde::agent
