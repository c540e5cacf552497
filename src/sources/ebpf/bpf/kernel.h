/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few kernel types that our programs touch, with the few fields they read; CO-RE finds them in the
 * running kernel. Not vmlinux.h: 130,000 lines, and a recent one broke verified code. Source:
 * include/linux/sched.h, include/linux/sched/signal.h, arch/x86/include/asm/processor.h. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  int counter;
} atomic_t;

struct signal_struct {
  atomic_t live; /* threads of the group that have not begun to exit */
};

struct thread_struct {
  unsigned long fsbase; /* the thread pointer: pthread_self() */
};

struct task_struct {
  int pid;
  int tgid;
  struct signal_struct *signal;
  struct thread_struct thread;
};

#pragma clang attribute pop
