// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/drops.h"
#include "sources/source.h"

namespace gpusonde::ebpf {

class StackTables;

// Samples the stacks of running threads with a BPF program on every CPU's clock event
// (bpf/cpu_sampler.bpf.c). Native stacks are unwound with the tables in `tables`; stacks of CPython processes
// that are registered there also have their Python frames. Not thread-safe.
class CpuSampler final : public sources::Source {
 public:
  struct Options {
    double frequency_hz = 99;  // per CPU, in (0, 10000]
    // Sample every process; else those given to Follow and their descendants.
    bool every_process = false;
    // Must hold the samples between two calls of Drain; rounded up to a power of two of pages.
    uint32_t ring_bytes = uint32_t{8} << 20;
  };

  // Loads the BPF program and starts the clocks on all online CPUs. Stacks are unwound with `tables`. Errors:
  // kPermissionDenied (needs root, or CAP_BPF and CAP_PERFMON), kUnsupported (no BTF, no BPF),
  // kInvalidArgument for a frequency out of range. Each says what to do.
  static Result<CpuSampler> Create(const Options& options, const StackTables& tables);

  // Samples this process, and the descendants that it creates from now on.
  Status Follow(int32_t pid);

  // Visits RawSample.
  Status Drain(const Visit& visit) override;

  // Readable when the ring fills up faster than expected, or when a sample has a new process or new
  // Python code, which must be inspected before it is gone.
  std::vector<int> wake_fds() const override;

  // Descriptors of the BPF maps `targets` and `target_changes`, to share with other programs; unused with
  // every_process.
  int targets_fd() const;
  int target_changes_fd() const;

  // The time that one sample represents.
  int64_t period_ns() const;

  model::DropCounts DrainDrops() override;

  // Stops the clocks.
  void Stop() override;

  CpuSampler(CpuSampler&&) noexcept;
  CpuSampler& operator=(CpuSampler&&) noexcept;
  ~CpuSampler() override;

 private:
  struct State;
  explicit CpuSampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::ebpf
