// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "agent/process_table.h"
#include "base/id128.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/perf/sideband.h"
#include "symbols/binary_table.h"

namespace gpusonde::agent {

// Tells the kernel's programs what they need to take the stacks of processes: unwind tables of the files they
// map, and where their Python interpreter is. Not thread-safe.
class StackDescriber {
 public:
  // The references must outlive the describer.
  StackDescriber(ebpf::StackTables& tables, symbols::BinaryTable& binaries, ProcessTable& processes)
      : tables_(tables), binaries_(binaries), processes_(processes) {}

  // After an event was applied to the table of processes: forks share, ends forget.
  void Follow(const perf::SidebandEvent& event);

  // The process has ended, which no event told.
  void Forget(int32_t pid) { tables_.ForgetProcess(pid); }

  // Of a process that was sampled: tells what changed since it was last described. Compiles the tables of
  // files seen for the first time: 2 ms for libc, 90 ms for libLLVM.
  void Describe(Process& process);

 private:
  // The file, if the kernel has its table.
  std::optional<Id128> FileWithTable(const symbols::BinaryTable::Binary& binary, int32_t pid);

  // Files whose unwind tables make no sense or are too large: a process that maps one again and again would
  // have it read each time.
  static constexpr size_t kMaxUnusable = 10'000;  // then starting over
  std::unordered_set<Id128> unusable_;

  ebpf::StackTables& tables_;
  symbols::BinaryTable& binaries_;
  ProcessTable& processes_;
};

}  // namespace gpusonde::agent
