/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* Samples from sources/ebpf/bpf/cpu_sampler.bpf.c to sources/ebpf/cpu_sampler.cpp. Plain C for both. */
#pragma once

#include "wire/stack.h"

/* One stack of one running thread. */
struct gpusonde_cpu_sample {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 pid;     /* thread group, in the pid namespace of user space */
  __u32 tid;     /* thread, likewise */
  __u32 cpu;
  __u32 unused;
  struct gpusonde_stack stack; /* last: it ends after the last word used */
};

/* Indices of the BPF program's per-CPU drop counters. */
enum gpusonde_cpu_counter {
  GPUSONDE_RING_FULL,    /* samples lost: no room */
  GPUSONDE_TARGETS_FULL, /* processes not sampled: too many at once */
  GPUSONDE_CPU_COUNTERS,
};
