// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "agent/collector.h"
#include "base/result.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/off_cpu.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/perf/sideband.h"
#include "sources/source.h"

namespace gpusonde::agent {

// The sources that run in the kernel and need privileges. Not thread-safe.
struct KernelSide {
  // Calls `beside` once, on another thread, while the kernel verifies programs, and returns after it has; it
  // may load further programs that use the tables. Not called if the kernel refuses the tables.
  static Result<KernelSide> Create(const Collector::Options& options,
                                   const std::function<void(const ebpf::StackTables&)>& beside);

  // In the order in which they are to be drained: stacks before the side-band, so that the side-band has
  // every mapping that a drained stack refers to.
  std::vector<sources::Source*> StackSources();

  perf::Sideband sideband;
  ebpf::StackTables tables;
  ebpf::CpuSampler sampler;
  std::optional<ebpf::OffCpu> off_cpu;  // empty if the kernel refuses it
};

}  // namespace gpusonde::agent
