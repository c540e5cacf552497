// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "model/drops.h"
#include "sources/ebpf/raw_stack.h"
#include "wire/off_cpu.h"

namespace gpusonde::ebpf {

class CpuSampler;
class StackTables;

// Tells of threads that leave their CPU, with their stacks, and of how long they were away
// (bpf/off_cpu.bpf.c): of the processes that a CpuSampler follows. How many is bounded by a budget, and who
// is told of is drawn at random with a chance that is told, so that sums over intervals weighed with WeightOf
// are true on average. Not thread-safe.
class OffCpu {
 public:
  struct Options {
    uint32_t stacks_per_second = 99;  // per CPU, at least 1; a stack costs some microseconds
    bool every_process = false;
    uint32_t ring_bytes = uint32_t{4} << 20;
  };

  // The stack is valid during the callback only.
  struct Begin {
    gpusonde_off_cpu_head head{};
    RawStack stack;
  };
  using End = gpusonde_off_cpu_end;

  // Starts telling. `sampler` says which processes. Errors: as CpuSampler::Create.
  static Result<OffCpu> Create(const Options& options, const StackTables& tables, const CpuSampler& sampler);

  // Hands over everything that waits; a begin comes before its end.
  Status Drain(const std::function<void(const Begin&)>& begin, const std::function<void(const End&)>& end);

  // What was lost or incomplete since the last call.
  model::DropCounts TakeDrops();

  // Stops telling; what waits can still be drained, and then, as if they ended now, the absences under way.
  void Stop();

  OffCpu(OffCpu&&) noexcept;
  OffCpu& operator=(OffCpu&&) noexcept;
  ~OffCpu();

 private:
  struct State;
  explicit OffCpu(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The time that an interval of `duration_ns` stands for, whose begin was told with `chance` and `limit_ns`; 0
// if it is shorter than the limit, and so one that is left out. The expected value is the duration.
int64_t OffCpuWeight(int64_t duration_ns, uint32_t chance, uint32_t limit_ns);

}  // namespace gpusonde::ebpf
