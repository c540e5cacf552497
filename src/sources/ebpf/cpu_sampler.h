// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "model/drops.h"
#include "sources/ebpf/raw_stack.h"

namespace gpusonde::ebpf {

class StackTables;

// One stack of one running thread. The stack is valid during the callback only.
struct RawSample {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  int32_t pid = 0;      // as our own pid namespace numbers it, like tid
  int32_t tid = 0;
  int32_t cpu = 0;
  RawStack stack;
};

// Samples the stacks of running threads with a kernel program on every CPU's clock event
// (bpf/cpu_sampler.bpf.c). Native stacks are unwound by the tables of files in `tables`, with the CPython
// frames of processes that it describes beside them. Not thread-safe.
class CpuSampler {
 public:
  struct Options {
    double frequency_hz = 99;  // per CPU, in (0, 10000]
    // Sample every process; else those given to Follow and their descendants.
    bool every_process = false;
    // Holds what arrives between two calls of Drain; rounded up to a power of two of pages.
    uint32_t ring_bytes = uint32_t{8} << 20;
  };

  // Loads the kernel program and starts the clocks on all online CPUs. Stacks are taken as `tables` say.
  // Errors: kPermissionDenied (who may: root, or CAP_BPF and CAP_PERFMON), kUnsupported (no BTF, no BPF),
  // kInvalidArgument for a frequency out of range. Each says what to do.
  static Result<CpuSampler> Create(const Options& options, const StackTables& tables);

  // Samples this process and every descendant it makes from now on.
  Status Follow(int32_t pid);

  // Hands over everything that waits. Samples of one CPU come in order; those of several are interleaved.
  Status Drain(const std::function<void(const RawSample&)>& visit);

  // Readable (epoll) when the ring fills up faster than expected, or when a sample shows something that has
  // to be learnt before it is gone: a process or Python code not seen before.
  int wake_fd() const;

  // Of the kernel's list of processes that are followed, and of how often it grew, for other programs; unused
  // with every_process.
  int targets_fd() const;
  int target_changes_fd() const;

  // Time that one sample stands for.
  int64_t period_ns() const;

  // What was lost or incomplete since the last call.
  model::DropCounts TakeDrops();

  // Stops the clocks; what waits can still be drained.
  void Stop();

  CpuSampler(CpuSampler&&) noexcept;
  CpuSampler& operator=(CpuSampler&&) noexcept;
  ~CpuSampler();

 private:
  struct State;
  explicit CpuSampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::ebpf
