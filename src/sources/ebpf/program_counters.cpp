// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/program_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wire/stack.h"

namespace gpusonde::ebpf {

void ProgramCounters::Take(int map_fd, std::span<const model::DropReason> reasons, model::DropCounts& drops) {
  for (uint32_t counter = 0; counter < seen_.size(); ++counter)
    TakeOne(map_fd, counter, reasons[counter], drops);
}

void ProgramCounters::TakeOne(int map_fd, uint32_t counter, model::DropReason reason,
                              model::DropCounts& drops) {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(libbpf_num_possible_cpus()));
  if (bpf_map_lookup_elem(map_fd, &counter, by_cpu.data()) != 0) return;
  uint64_t total = 0;
  for (const uint64_t value : by_cpu) total += value;
  drops.Add(reason, static_cast<int64_t>(total - seen_[counter]));
  seen_[counter] = total;
}

std::span<const model::DropReason> StackCounterReasons() {
  using enum model::DropReason;
  static constexpr model::DropReason kReasons[GPUSONDE_STACK_COUNTERS] = {kNoUserStack, kStackTruncated,
                                                                          kTooManyProcesses};
  return kReasons;
}

}  // namespace gpusonde::ebpf
