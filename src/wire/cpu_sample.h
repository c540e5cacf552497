/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* What sources/ebpf/bpf/cpu_sampler.bpf.c writes and sources/ebpf/cpu_sampler.cpp reads. Plain C for both. */
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

/* The kernel's own default limit (kernel.perf_event_max_stack), for each of the two stacks. */
#define GPUSONDE_MAX_FRAMES 127

/* One stack of one running thread. On the wire it ends after the last frame used. */
struct gpusonde_cpu_sample {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 pid;     /* thread group, in the initial pid namespace */
  __u32 tid;     /* thread, in the initial pid namespace */
  __u32 cpu;
  __u16 kernel_frames; /* first in `frames`, leaf first; 0 when it ran in user mode */
  __u16 user_frames;   /* after them, leaf first */
  __u64 frames[2 * GPUSONDE_MAX_FRAMES];
};

/* Indices of the kernel program's per-CPU counters; what could not be handed over is counted there. */
enum gpusonde_cpu_counter {
  GPUSONDE_RING_FULL,       /* samples lost: no room */
  GPUSONDE_NO_USER_STACK,   /* the user stack could not be read; the sample is kept without it */
  GPUSONDE_STACK_TRUNCATED, /* a stack deeper than GPUSONDE_MAX_FRAMES; the sample is kept, cut */
  GPUSONDE_TARGETS_FULL,    /* processes not sampled: too many at once */
  GPUSONDE_CPU_COUNTERS,
};
