// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "agent/gpu_rows.h"
#include "agent/off_cpu_rows.h"
#include "agent/process_table.h"
#include "agent/rows.h"
#include "agent/stack_interner.h"
#include "base/id128.h"
#include "model/drops.h"
#include "sources/cupti/event.h"
#include "sources/ebpf/event.h"

namespace gpusonde::agent {

// Turns what was captured with a stack into rows: samples of the CPU clock, off-CPU begins, calls and graph
// nodes. Not thread-safe.
class SampleRows {
 public:
  struct Outputs {
    Rows& rows;
    GpuRows& gpu_rows;
    OffCpuRows& off_cpu_rows;
    model::DropCounts& drops;
  };
  // `period_ns` is the time that a sample of the CPU clock stands for. The references must outlive it.
  SampleRows(int64_t epoch_offset_ns, int64_t period_ns, StackInterner& stacks, const Outputs& outputs)
      : epoch_offset_ns_(epoch_offset_ns), period_ns_(period_ns), stacks_(stacks), outputs_(outputs) {}

  // Drops samples of the CPU clock outside [begin_ns, end_ns] (CLOCK_MONOTONIC).
  void set_limits(int64_t begin_ns, int64_t end_ns) {
    begin_ns_ = begin_ns;
    end_ns_ = end_ns;
  }
  bool IsOutside(const ebpf::RawSample& sample) const {
    return sample.time_ns < begin_ns_ || sample.time_ns > end_ns_;
  }

  // `process` is that of the event, with the mappings at its time.
  void Ingest(const ebpf::RawSample& sample, Process& process);
  void Ingest(const ebpf::OffCpuBegin& begin, Process& process);
  void Ingest(const cupti::Event& event, Process& process);

 private:
  int64_t epoch_offset_ns_;
  int64_t period_ns_;
  StackInterner& stacks_;
  Outputs outputs_;
  int64_t begin_ns_ = 0;
  int64_t end_ns_ = std::numeric_limits<int64_t>::max();
  std::vector<uint64_t> frames_;  // of the stack that is trimmed
};

}  // namespace gpusonde::agent
