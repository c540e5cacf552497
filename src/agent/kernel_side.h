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

// What a profiler has in the kernel, and needs privileges for. Not thread-safe.
struct KernelSide {
  // Calls `beside` once, on another thread, while the kernel checks programs; it has returned before Create
  // does, and may load others that use the tables. Not called when the kernel refuses the tables.
  static Result<KernelSide> Create(const CpuProfiler::Options& options,
                                   const std::function<void(const ebpf::StackTables&)>& beside);

  // Readable (epoll) when something should be gathered at once.
  std::vector<int> wake_fds() const;
  model::DropCounts TakeDrops();
  // No more samples are taken; what waits can still be drained.
  void Stop();

  perf::Sideband sideband;
  ebpf::StackTables tables;
  ebpf::CpuSampler sampler;
  std::optional<ebpf::OffCpu> off_cpu;  // nothing where the kernel refuses it
};

}  // namespace gpusonde::agent
