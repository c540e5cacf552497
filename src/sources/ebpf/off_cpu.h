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

// Reports the intervals that threads of the processes that a CpuSampler follows spend off their CPU, with
// their stacks (bpf/off_cpu.bpf.c): all long ones, and of short ones as many as a budget allows, drawn at
// random with a chance that goes with them. Sums over intervals weighed with OffCpuWeight are exact for long
// ones and unbiased for short ones. Not thread-safe.
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
    uint64_t taken_ns = 0;  // when the stack was; without frames: it was not
    RawStack stack;
  };
  using End = gpusonde_off_cpu_end;

  // Starts telling. `sampler` says which processes. Errors: as CpuSampler::Create.
  static Result<OffCpu> Create(const Options& options, const StackTables& tables, const CpuSampler& sampler);

  // Hands over everything that waits; a begin comes before its end. One whose stack was taken late comes
  // right before it.
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

// The time that an interval of `duration_ns` with this head stands for; 0 if it is one that is left out. A
// long one stands for itself; of others the expected value is the duration.
int64_t OffCpuWeight(int64_t duration_ns, const gpusonde_off_cpu_head& head);

}  // namespace gpusonde::ebpf
