/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pids and tids in the pid namespace of user space: in a container those of its own namespace, which its
 * /proc, its children and the kernel's side-band events use too. Include it once in a program. Source:
 * include/linux/pid.h (struct pid), Documentation/bpf/btf.rst. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

/* Set before loading: the inode of user space's pid namespace; 0 when it is the initial one. */
const volatile __u32 pid_namespace = 0;

/* Namespaces nest 32 deep (MAX_PID_NS_LEVEL); containers are one or two deep. */
#define PID_LEVELS 8

struct pids {
  __u32 pid; /* of the thread group; 0: not in user space's namespace, or the idle task */
  __u32 tid;
};

/* A global function, so that the verifier follows the loop once per program. Such a function receives no
 * kernel pointers, but memory that contains one. */
__noinline __u32 number_in_namespace(const struct pid *const *pointer) {
  if (!pointer) return 0;
  const struct pid *pid = *pointer;
  const __u32 deepest = BPF_CORE_READ(pid, level);
  for (__u32 level = 0; level < PID_LEVELS && level <= deepest; ++level) {
    struct upid number;
    if (bpf_core_read(&number, sizeof number, &pid->numbers[level])) return 0;
    if (BPF_CORE_READ(number.ns, ns.inum) == pid_namespace) return number.nr;
  }
  return 0;
}

static __always_inline struct pids pids_of(const struct task_struct *task) {
  if (!pid_namespace) return (struct pids){.pid = task->tgid, .tid = task->pid};
  /* Not task->thread_pid: for each such load the verifier searches all of the kernel's types by name. */
  const struct pid *process = BPF_CORE_READ(task, group_leader, thread_pid),
                   *thread = BPF_CORE_READ(task, thread_pid);
  return (struct pids){.pid = number_in_namespace(&process), .tid = number_in_namespace(&thread)};
}

static __always_inline struct pids current_pids(void) { return pids_of(bpf_get_current_task_btf()); }
