// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/drops.h"

namespace gpusonde::ebpf {

// Reads the increments of a BPF program's monotonic per-CPU counters. Not thread-safe.
class ProgramCounters {
 public:
  explicit ProgramCounters(size_t count) : seen_(count) {}

  // Adds the increase of each counter of the map to `drops`, under the counter's reason.
  void Take(int map_fd, std::span<const model::DropReason> reasons, model::DropCounts& drops);
  // The same for a single counter, if the others are counted elsewhere.
  void TakeOne(int map_fd, uint32_t counter, model::DropReason reason, model::DropCounts& drops);

 private:
  std::vector<uint64_t> seen_;
};

// The drop reasons for the stack counters of every program that takes stacks (enum gpusonde_stack_counter).
std::span<const model::DropReason> StackCounterReasons();

}  // namespace gpusonde::ebpf
