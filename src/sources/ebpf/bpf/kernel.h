/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel types that our programs use, with the fields that they read; CO-RE relocates them to the running
 * kernel's layout. Not vmlinux.h, which has 130,000 lines, and a recent version of which broke programs that
 * had passed the verifier. Source: include/linux/sched.h, include/linux/sched/signal.h, include/linux/pid.h,
 * arch/x86/include/asm/processor.h, include/linux/fs.h, include/linux/fdtable.h, include/net/sock.h.
 */
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

struct mm_struct;

struct in6_addr {
  union {
    __u32 u6_addr32[4];
  } in6_u;
};
struct sock_common {
  unsigned short skc_family;
  __u32 skc_daddr; /* IPv4: of the other end; 0: not connected */
  __u32 skc_rcv_saddr;
  struct in6_addr skc_v6_daddr;
  struct in6_addr skc_v6_rcv_saddr;
};
struct sock {
  struct sock_common __sk_common;
};
struct socket {
  struct sock *sk;
};
struct inode {
  unsigned short i_mode;
};
struct file {
  struct inode *f_inode;
  void *private_data; /* a socket's: struct socket */
};
struct fdtable {
  unsigned int max_fds;
  struct file **fd;
};
struct files_struct {
  struct fdtable *fdt;
};

struct cpumask {
  unsigned long bits[1]; /* as many as there are CPUs */
};

struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid { /* complete, as it is read as an array element */
  int nr;
  struct pid_namespace *ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[]; /* one per namespace, from the initial one down to `level` */
};

/* A thread's registers on entry to the kernel (arch/x86/include/asm/ptrace.h). CO-RE ignores the suffix after
 * ___, which distinguishes this from user space's own pt_regs. */
struct pt_regs___kernel {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
};

struct sched_entity {
  __u64 sum_exec_runtime;      /* ns on a CPU */
  __u64 prev_sum_exec_runtime; /* the same when it was last switched in */
};
struct task_struct {
  int pid;
  int tgid;
  struct mm_struct *mm; /* NULL: a kernel thread, or exiting */
  unsigned int flags;
  struct task_struct *group_leader;
  struct pid *thread_pid;
  struct signal_struct *signal;
  struct files_struct *files;
  struct thread_struct thread;
  struct sched_entity se;
  const struct cpumask *cpus_ptr; /* where it may run */
  unsigned int __state;           /* 0: runnable */
  unsigned in_iowait : 1;
  unsigned frozen : 1;  /* by a cgroup of version 2, or waiting for a vfork */
  unsigned long jobctl; /* include/linux/sched/jobctl.h */
  __u64 start_boottime; /* ns */
  char comm[16];
};

struct bvec_iter {
  unsigned int bi_size; /* bytes left */
};
struct bio {
  struct bvec_iter bi_iter;
};

struct sk_buff {
  struct sk_buff *next;
  struct sock *sk; /* NULL: a forwarded packet */
  __s64 tstamp;    /* TCP: earliest departure time, CLOCK_MONOTONIC (include/net/tcp.h) */
  unsigned int len;
};

#pragma clang attribute pop

/* Before 5.14 the field had another name and size. */
struct task_struct___before_5_14 {
  long state;
} __attribute__((preserve_access_index));

static __always_inline __u32 state_of(struct task_struct *task) {
  if (bpf_core_field_exists(task->__state)) return task->__state;
  const struct task_struct___before_5_14 *old = (void *)task;
  return BPF_CORE_READ(old, state);
}

/* include/linux/sched.h */
#define PF_EXITING 4
#define STATE_UNINTERRUPTIBLE 2
#define STATE_STOPPED 4
#define STATE_TRACED 8
#define STATE_DEAD 0x80
#define JOBCTL_TRAP_FREEZE (1ul << 23)
#define STATE_FROZEN 0x8000 /* by a cgroup of version 1; since 6.1, uninterruptible before */
