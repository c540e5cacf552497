// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/drops.h"

namespace gpusonde::ebpf {

// A kernel program's per-CPU counters, which only grow, as what was added since the last look. Not
// thread-safe.
class ProgramCounters {
 public:
  explicit ProgramCounters(size_t count) : seen_(count) {}

  // Adds to `drops`, for each counter of the map its reason.
  void Take(int map_fd, std::span<const model::DropReason> reasons, model::DropCounts& drops);
  // The same for one of them, where the others are counted elsewhere.
  void TakeOne(int map_fd, uint32_t counter, model::DropReason reason, model::DropCounts& drops);

 private:
  std::vector<uint64_t> seen_;
};

// Why stacks were incomplete, by the counters of every program that takes them (enum gpusonde_stack_counter).
std::span<const model::DropReason> StackCounterReasons();

}  // namespace gpusonde::ebpf
