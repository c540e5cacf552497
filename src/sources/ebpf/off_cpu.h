// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/drops.h"
#include "sources/source.h"
#include "wire/off_cpu.h"

namespace gpusonde::ebpf {

class CpuSampler;
class StackTables;

// Reports the off-CPU intervals of the processes that a CpuSampler follows, with their stacks
// (bpf/off_cpu.bpf.c): all long ones, and a random sample of the short ones, with a sampling probability that
// keeps to a budget and is reported with each. Sums of intervals weighted with OffCpuWeight are exact for
// long intervals and unbiased for short ones. Not thread-safe.
class OffCpu final : public sources::Source {
 public:
  struct Options {
    uint32_t stacks_per_second = 99;  // per CPU, at least 1; a stack costs some microseconds
    bool every_process = false;
    uint32_t ring_bytes = uint32_t{4} << 20;
  };

  // Starts reporting, for the processes that `sampler` follows. Errors: as CpuSampler::Create.
  static Result<OffCpu> Create(const Options& options, const StackTables& tables, const CpuSampler& sampler);

  // Visits OffCpuBegin and OffCpuEnd; a begin comes before its end, immediately before it if its stack was
  // taken when the thread was switched in again.
  Status Drain(const Visit& visit) override;

  model::DropCounts DrainDrops() override;

  // Stops reporting. Pending events can still be drained, followed by the intervals in progress, as if they
  // ended now.
  void Stop() override;

  OffCpu(OffCpu&&) noexcept;
  OffCpu& operator=(OffCpu&&) noexcept;
  ~OffCpu() override;

 private:
  struct State;
  explicit OffCpu(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The weight of an interval of `duration_ns` with this head, in ns: its duration if it is long; else an
// unbiased estimate of it from the sampling probability, or 0 if it isn't part of the sample.
int64_t OffCpuWeight(int64_t duration_ns, const gpusonde_off_cpu_head& head);

}  // namespace gpusonde::ebpf
