/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes a program tells of. Include it once in a program. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/pids.h"

/* Set before loading: tell of whatever runs, and look at no list. */
const volatile bool every_process = false;

/* Thread groups to tell of. Two programs may share one list (bpf_map__reuse_fd). */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u32);
  __type(value, __u8);
} targets SEC(".maps");

/* How often somebody was added to the list from outside (target_list.h): what was found before is looked up
 * again. Whoever shares the list shares this, too. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} target_changes SEC(".maps");

static __always_inline bool wanted(__u32 pid) {
  return every_process || bpf_map_lookup_elem(&targets, &pid) != NULL;
}

/* A child of a process on the list is on it, too; false when there is no room. */
static __always_inline bool follow_child(__u32 parent_pid, __u32 child_pid) {
  if (every_process || !bpf_map_lookup_elem(&targets, &parent_pid)) return true;
  const __u8 one = 1;
  return bpf_map_update_elem(&targets, &child_pid, &one, BPF_ANY) == 0;
}

/* A pid may be used again for a stranger. */
static __always_inline void forget_target(__u32 pid) {
  if (!every_process) bpf_map_delete_elem(&targets, &pid);
}

/* What was found of threads that a CPU saw lately: their numbers in a namespace and a look at the list cost
 * half a microsecond, which is much at ten thousand switches a second. */
#define REMEMBERED_THREADS 256
#define REMEMBERED_NS 100000000
struct remembered_threads {
  struct remembered {
    __u64 until_ns;
    __u32 task_tid;
    __u32 changes;
    struct pids pids;
  } slots[REMEMBERED_THREADS];
};

/* The numbers of a thread to tell of, and zeros of all others; that somebody was taken off the list is seen
 * within REMEMBERED_NS. `lately` is of this CPU, and only for programs that don't interrupt each other. */
static __always_inline struct pids target_of(const struct task_struct *task,
                                             struct remembered_threads *lately, __u64 now) {
  const struct pids nobody = {};
  if (!task->mm) return nobody;
  const __u32 tid = task->pid;
  struct remembered *slot = &lately->slots[tid % REMEMBERED_THREADS];
  const __u32 zero = 0;
  const __u32 *changes = bpf_map_lookup_elem(&target_changes, &zero); /* compiled to an address */
  if (!changes) return nobody;
  const __u32 seen = *(const volatile __u32 *)changes; /* before the list is looked at */
  if (slot->task_tid == tid && slot->changes == seen && now < slot->until_ns) return slot->pids;
  const struct pids pids = pids_of(task);
  slot->until_ns = now + REMEMBERED_NS;
  slot->task_tid = tid;
  slot->changes = seen;
  slot->pids = pids.pid && wanted(pids.pid) ? pids : nobody;
  return slot->pids;
}
