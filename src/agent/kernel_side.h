// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "agent/cpu_profiler.h"
#include "base/result.h"
#include "model/drops.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/off_cpu.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/perf/sideband.h"

namespace gpusonde::agent {

// All parts of a profiler that run in the kernel and need privileges. Not thread-safe.
struct KernelSide {
  // Calls `beside` once, on another thread, while the kernel verifies programs, and returns after it has; it
  // may load further programs that use the tables. Not called if the kernel refuses the tables.
  static Result<KernelSide> Create(const CpuProfiler::Options& options,
                                   const std::function<void(const ebpf::StackTables&)>& beside);

  // Descriptors that become readable (epoll) when buffers should be drained at once.
  std::vector<int> wake_fds() const;
  model::DropCounts TakeDrops();
  // Stops sampling; buffers can still be drained.
  void Stop();

  perf::Sideband sideband;
  ebpf::StackTables tables;
  ebpf::CpuSampler sampler;
  std::optional<ebpf::OffCpu> off_cpu;  // empty if the kernel refuses it
};

}  // namespace gpusonde::agent
