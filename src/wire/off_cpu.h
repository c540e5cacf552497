/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* What sources/ebpf/bpf/off_cpu.bpf.c writes and sources/ebpf/off_cpu.cpp reads. Plain C for both.
 *
 * Intervals off the CPU are sampled in two ways:
 *  - Short ones by chance. When a thread leaves its CPU, a coin (`chance`, by the rate of switches) decides
 * whether its stack is taken, then and there: no program can take the stack of a thread that isn't running.
 * An end follows when the thread is back, if it was away for longer than a limit drawn at random: uniform
 * from 0 to GPUSONDE_OFF_CPU_WHOLE_NS, so that an interval of d is kept with probability chance * min(1, d /
 * GPUSONDE_OFF_CPU_WHOLE_NS).
 *  - Those of GPUSONDE_OFF_CPU_LONG_NS and more are all kept, whatever the coin said, and stand for
 * themselves. The stack of one that the coin had left out is taken when the thread is back, before it runs
 * on. */
#pragma once

#include "wire/stack.h"

#define GPUSONDE_OFF_CPU_WHOLE_NS 10000000
/* A thread ends at most two such intervals a second: a thousand sleepers cost what 2,000 stacks do. */
#define GPUSONDE_OFF_CPU_LONG_NS 500000000

enum gpusonde_off_cpu_kind {
  GPUSONDE_OFF_CPU_BEGIN, /* struct gpusonde_off_cpu_begin */
  GPUSONDE_OFF_CPU_END,   /* struct gpusonde_off_cpu_end */
};

struct gpusonde_off_cpu_head {
  __u32 kind;
  __u32 pid;      /* thread group, in our pid namespace */
  __u32 tid;      /* thread, in our pid namespace */
  __u32 cpu;      /* that it left */
  __u64 time_ns;  /* when it left, CLOCK_MONOTONIC */
  __u32 limit_ns; /* an end is told when an interval is at least so long */
  __u32 chance;   /* with which threads that left their CPU at this time were told of, × 2^32, less 1 */
  __s32 syscall;  /* that it is in, its number on x86-64; negative: none */
  /* Its second and third argument: of futex(2) the operation, and the value that is waited with. */
  __u32 futex_op;
  __u32 futex_value;
  __u8 runnable; /* it was preempted, and waits for nothing but a CPU */
  __u8 in_io;    /* the kernel counts it as waiting for I/O */
  __u8 uninterruptible;
  __u8 by_coin; /* the coin chose it; else only its long intervals count */
};

struct gpusonde_off_cpu_begin {
  struct gpusonde_off_cpu_head head;
  __u64 taken_ns;              /* the stack: when the thread left, or when it was back */
  struct gpusonde_stack stack; /* last: it ends after the last word used */
};

/* In the kernel program's map `absences`: threads that are away, by their id in the initial pid namespace. */
struct gpusonde_off_cpu_absence {
  struct gpusonde_off_cpu_head head;
  __u64 woken_ns; /* 0: not yet */
  __u64 end_ns;   /* 0: still away; else it is about to run, and its stack is to be taken */
};

struct gpusonde_off_cpu_end {
  __u32 kind;
  __u32 tid;
  __u64 begin_ns; /* of the interval, as told with its begin */
  __u64 woken_ns; /* when it had what it waited for, and waited for a CPU; begin_ns when it was preempted */
  __u64 end_ns;   /* when it ran again */
};

/* Indices of the kernel program's per-CPU counters. */
enum gpusonde_off_cpu_counter {
  GPUSONDE_OFF_CPU_RING_FULL, /* begins and ends lost: no room */
  GPUSONDE_OFF_CPU_TOO_MANY,  /* threads not told of: too many wait at once */
  GPUSONDE_OFF_CPU_COUNTERS,
};
