/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* Sums that sources/ebpf/bpf/host_signals.bpf.c keeps and sources/ebpf/host_signals.cpp reads. Plain C for
 * both.
 */
#pragma once

#include <linux/types.h>

/* Sums are kept per bucket of CLOCK_MONOTONIC of this length. */
#define GPUSONDE_SIGNAL_BUCKET_NS 10000000

/* An interval is spread over its last 32 buckets at most; the first of these gets the time before it as well.
 */
#define GPUSONDE_SIGNAL_SPREAD 32

/* In ns, except the last three. A thread is in exactly one of the first seven states at a time, or stopped;
 * interrupts, reclaim and displacement are part of these. */
enum gpusonde_signal {
  GPUSONDE_SIGNAL_RUNNING,
  GPUSONDE_SIGNAL_RUN_QUEUE,      /* runnable but not running; other: the process that ran on its CPU */
  GPUSONDE_SIGNAL_BLOCKED_IO,     /* waiting for a block device (task_struct.in_iowait) */
  GPUSONDE_SIGNAL_BLOCKED,        /* in uninterruptible sleep otherwise */
  GPUSONDE_SIGNAL_WAITING,        /* other: the target process that woke it, its own included */
  GPUSONDE_SIGNAL_SLEEPING,       /* until a timer expired */
  GPUSONDE_SIGNAL_NETWORK,        /* until a packet arrived; other: the target process that sent it */
  GPUSONDE_SIGNAL_INTERRUPTED,    /* interrupts and softirqs on its CPU while it was running */
  GPUSONDE_SIGNAL_RECLAIM,        /* in direct reclaim */
  GPUSONDE_SIGNAL_DISPLACED,      /* part of run-queue delay behind a target process; other: the process that
                                   * ran on another CPU where the thread might have run */
  GPUSONDE_SIGNAL_STOPPED,        /* by a signal, a tracer or a frozen cgroup; other: the process that let it
                                   * continue */
  GPUSONDE_SIGNAL_NETWORK_QUEUED, /* per process: its TCP packets waited in the queue of a network device */
  GPUSONDE_SIGNAL_DISK_BYTES,     /* requested from block devices; per process, all processes */
  GPUSONDE_SIGNAL_NETWORK_BYTES,  /* sent after waiting in the queue of a network device; all processes */
  GPUSONDE_SIGNAL_RETRANSMITS,    /* TCP segments retransmitted; all processes */
  GPUSONDE_SIGNALS,
};

struct gpusonde_signal_key {
  __u32 bucket; /* its number since boot, low 32 bits */
  __u32 pid;    /* in our pid namespace, like tid and other; 0: not in it */
  __u32 tid;    /* 0: all threads */
  __u32 other;  /* 0: none, or not known */
  __u32 signal;
};

/* A sum, or a part of one. */
struct gpusonde_signal_part {
  struct gpusonde_signal_key key;
  __u32 unused;
  __u64 amount;
};

/* A process that a key names as `other`, or that used a disk or the network; by pid. */
struct gpusonde_signal_process {
  __u64 started_ns; /* CLOCK_BOOTTIME */
  char name[16];
};

/* Indices of the kernel program's per-CPU counters. */
enum gpusonde_signal_counter {
  GPUSONDE_SIGNAL_SUMS_FULL,    /* intervals not added: the maps were full */
  GPUSONDE_SIGNAL_THREADS_FULL, /* threads not tracked: the map was full */
  GPUSONDE_SIGNAL_TARGETS_FULL, /* processes not tracked: the map was full */
  GPUSONDE_SIGNAL_COUNTERS,
};
