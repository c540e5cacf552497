/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* Off-CPU intervals from sources/ebpf/bpf/off_cpu.bpf.c to sources/ebpf/off_cpu.cpp. Plain C for both.
 *
 * Intervals off the CPU are recorded in two ways:
 *  - Short ones are sampled. When a thread leaves its CPU, its stack is taken with a probability (`chance`)
 *    that follows the rate of context switches: no program can read the stack of a thread that isn't running.
 *    An end follows when the thread is back, if it was away for longer than a limit drawn uniformly from 0 to
 *    GPUSONDE_OFF_CPU_WHOLE_NS, so that an interval of d is kept with probability
 *    chance * min(1, d / GPUSONDE_OFF_CPU_WHOLE_NS).
 *  - Those of GPUSONDE_OFF_CPU_LONG_NS and more are all kept, with their length as weight. The stack of one
 *    that was not sampled is taken when the thread is back, before it runs on. */
#pragma once

#include "wire/stack.h"

#define GPUSONDE_OFF_CPU_WHOLE_NS 10000000
/* A thread ends at most two such intervals a second, so that 1,000 sleeping threads cost at most 2,000 stacks
 * a second. */
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
  __u32 limit_ns; /* the end is reported if the interval is at least this long */
  __u32 chance;   /* sampling probability when the thread left its CPU, × 2^32, minus 1 */
  __s32 syscall;  /* number on x86-64 of the system call it is in; negative: none */
  /* The system call's second and third argument: for futex(2) the operation and the value waited with. */
  __u32 futex_op;
  __u32 futex_value;
  __u8 runnable; /* preempted: it waits only for a CPU */
  __u8 in_io;    /* the kernel counts it as waiting for I/O */
  __u8 uninterruptible;
  __u8 sampled; /* 0: reported only if the interval is long */
};

struct gpusonde_off_cpu_begin {
  struct gpusonde_off_cpu_head head;
  __u64 taken_ns;              /* when the stack was taken: when the thread left its CPU, or was back */
  struct gpusonde_stack stack; /* last: it ends after the last word used */
};

/* A thread's last absence: it is off the CPU unless head.time_ns is 0. */
struct gpusonde_off_cpu_absence {
  struct gpusonde_off_cpu_head head;
  __u64 woken_ns; /* 0: not yet */
  __u64 end_ns;   /* 0: still off the CPU; else it is about to run, and its stack is still to be taken */
};

/* Value of the BPF map `thread_slots` (sources/ebpf/bpf/thread_entries.h). */
struct gpusonde_off_cpu_slot {
  __u32 tid; /* in the initial pid namespace; 0: nobody's */
  __u32 crowded;
  struct gpusonde_off_cpu_absence entry;
} __attribute__((aligned(64)));

struct gpusonde_off_cpu_end {
  __u32 kind;
  __u32 tid;
  __u64 begin_ns; /* of the interval, as in its gpusonde_off_cpu_begin */
  __u64 woken_ns; /* when it became runnable; begin_ns if it was preempted */
  __u64 end_ns;   /* when it ran again */
};

/* Indices of the kernel program's per-CPU counters. */
enum gpusonde_off_cpu_counter {
  GPUSONDE_OFF_CPU_RING_FULL, /* begins and ends lost: the ring was full */
  GPUSONDE_OFF_CPU_TOO_MANY,  /* threads not reported: too many were off the CPU at once */
  GPUSONDE_OFF_CPU_COUNTERS,
};
