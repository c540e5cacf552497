/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* What sources/ebpf/bpf/host_signals.bpf.c sums up and sources/ebpf/host_signals.cpp reads. Plain C for both.
 */
#pragma once

#include <linux/types.h>

/* Sums are kept for pieces of CLOCK_MONOTONIC so long. */
#define GPUSONDE_SIGNAL_BUCKET_NS 10000000

/* An interval is spread over so many buckets at most; what is earlier lies in the first of those. */
#define GPUSONDE_SIGNAL_SPREAD 32

/* Nanoseconds, but for the last three. A thread is in one of the first seven at a time; interrupts and
 * reclaim lie within. */
enum gpusonde_signal {
  GPUSONDE_SIGNAL_RUNNING,
  GPUSONDE_SIGNAL_RUN_QUEUE,      /* it could run; other: who had its CPU meanwhile */
  GPUSONDE_SIGNAL_BLOCKED_IO,     /* it waits for a device, as the kernel counts it */
  GPUSONDE_SIGNAL_BLOCKED,        /* it waits within the kernel, and no signal ends it */
  GPUSONDE_SIGNAL_WAITING,        /* other: who woke it, of the processes asked about; its own process too */
  GPUSONDE_SIGNAL_SLEEPING,       /* until a time */
  GPUSONDE_SIGNAL_NETWORK,        /* until a packet came; other: who sent it, of the processes asked about */
  GPUSONDE_SIGNAL_INTERRUPTED,    /* interrupts and softirqs on its CPU while it was on */
  GPUSONDE_SIGNAL_RECLAIM,        /* it looks for memory to free */
  GPUSONDE_SIGNAL_NETWORK_QUEUED, /* of a process: TCP packets of its waited for a network device */
  GPUSONDE_SIGNAL_DISK_BYTES,     /* asked of block devices; of every process */
  GPUSONDE_SIGNAL_NETWORK_BYTES,  /* that waited for a network device and got it; of every process */
  GPUSONDE_SIGNAL_RETRANSMITS,    /* TCP segments sent again; of every process */
  GPUSONDE_SIGNALS,
};

struct gpusonde_signal_key {
  __u32 bucket; /* its number since boot, low 32 bits */
  __u32 pid;    /* as our own pid namespace numbers it, like the others; 0: not in it */
  __u32 tid;    /* 0: all threads */
  __u32 other;  /* 0: nobody, or not known */
  __u32 signal;
};

/* Whom a key names as `other`, or who used a disk or a network; by pid. */
struct gpusonde_signal_process {
  __u64 started_ns; /* CLOCK_BOOTTIME */
  char name[16];
};

/* Indices of the kernel program's per-CPU counters. */
enum gpusonde_signal_counter {
  GPUSONDE_SIGNAL_SUMS_FULL,    /* pieces of time not summed up: no room */
  GPUSONDE_SIGNAL_THREADS_FULL, /* threads not followed: no room */
  GPUSONDE_SIGNAL_TARGETS_FULL, /* processes not followed: no room */
  GPUSONDE_SIGNAL_COUNTERS,
};
