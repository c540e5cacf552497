/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* One stack as BPF programs emit it (sources/ebpf/bpf/stack.h), for every kind of event. Plain C for both
 * sides; C++ reads it through sources/ebpf/raw_stack.h. */
#pragma once

#include "wire/python.h"
#include "wire/unwind.h"

#ifdef __cplusplus
#include <linux/types.h>
#endif

/* The kernel's own default limit (kernel.perf_event_max_stack), for each kind of frame. */
#define GPUSONDE_MAX_FRAMES 127

/* Kernel and user frames take one word each, Python frames two; rounded up to a power of two. */
#define GPUSONDE_STACK_WORDS 512

/* Where a stack's Python frames ended. */
enum gpusonde_python_end {
  GPUSONDE_PYTHON_COMPLETE,   /* at the thread's outermost one; also when it has none */
  GPUSONDE_PYTHON_TRUNCATED,  /* deeper than GPUSONDE_MAX_FRAMES */
  GPUSONDE_PYTHON_UNREADABLE, /* at memory that could not be read */
  GPUSONDE_PYTHON_UNKNOWN,    /* not read: no interpreter is registered for the process */
};

struct gpusonde_stack_counts {
  __u16 kernel_frames; /* addresses, first in `words`, leaf first; 0 when it ran in user mode */
  __u16 user_frames;   /* addresses, after them, leaf first */
  __u16 python_frames; /* struct gpusonde_python_frame, after those, leaf first */
  __u8 python_end;     /* enum gpusonde_python_end */
  __u8 native_end;     /* enum gpusonde_native_end, of the user frames */
};

/* Emitted only up to the last word used. */
struct gpusonde_stack {
  struct gpusonde_stack_counts counts;
  __u64 words[GPUSONDE_STACK_WORDS];
};

/* What BPF programs need to unwind the stacks of a process; by pid in their map `processes`. */
struct gpusonde_process {
  struct gpusonde_unwind_process unwind;
  struct gpusonde_python python;
  __u32 asked; /* set by a BPF program that has woken user space because this entry is out of date */
  __u32 unused;
};

/* Indices of the per-CPU counters that every program which takes stacks keeps in its map `stack_counters`. */
enum gpusonde_stack_counter {
  GPUSONDE_NO_USER_STACK,   /* the user stack could not be read; the sample is kept without it */
  GPUSONDE_STACK_TRUNCATED, /* more than GPUSONDE_MAX_FRAMES frames of a kind; kept, truncated */
  GPUSONDE_PROCESSES_FULL,  /* samples of processes that were not registered because the map was full */
  GPUSONDE_STACK_COUNTERS,
};
