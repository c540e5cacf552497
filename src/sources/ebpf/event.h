// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sources/ebpf/raw_stack.h"
#include "wire/host_signals.h"
#include "wire/off_cpu.h"

// What the eBPF programs report. Times are ns of CLOCK_MONOTONIC, and pids are those of our pid namespace.
namespace gpusonde::ebpf {

// One stack of one running thread.
struct RawSample {
  int64_t time_ns = 0;
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t cpu = 0;
  RawStack stack;
};

// A thread left its CPU.
struct OffCpuBegin {
  gpusonde_off_cpu_head head{};
  uint64_t taken_ns = 0;  // when the stack was taken; it has no frames if it wasn't
  RawStack stack;
};

// It runs again.
using OffCpuEnd = gpusonde_off_cpu_end;

// Part of a host signal's sum over one bucket, of one thread; or of a process, if `tid` is 0.
struct SignalSum {
  int64_t start_ns = 0;  // of the bucket
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t other = 0;  // the process that caused it; 0: none, or not known
  gpusonde_signal signal = GPUSONDE_SIGNAL_RUNNING;
  int64_t amount = 0;  // ns, bytes or segments (wire/host_signals.h)
};

}  // namespace gpusonde::ebpf
