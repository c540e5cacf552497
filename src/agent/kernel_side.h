// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  static Result<KernelSide> Create(const CpuProfiler::Options& options);

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
