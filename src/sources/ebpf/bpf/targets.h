/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that a program observes (targets). Include it once in a program. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/pids.h"

/* Set before loading: observe every process, without a list. */
const volatile bool every_process = false;

/* Thread groups to observe. Two programs may share one list (bpf_map__reuse_fd). Preallocated, 1 MB: before
 * Linux 6.1 a perf event's program may use no other maps. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, __u8);
} targets SEC(".maps");

/* How often user space has added to the list (bpf_program.h): a change invalidates the cache of non-targets
 * below. Programs that share the list share this counter, too. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} target_changes SEC(".maps");

static __always_inline bool wanted(__u32 pid) {
  return every_process || bpf_map_lookup_elem(&targets, &pid) != NULL;
}

/* Adds the child of a target; false when the list is full. */
static __always_inline bool follow_child(__u32 parent_pid, __u32 child_pid) {
  if (every_process || !bpf_map_lookup_elem(&targets, &parent_pid)) return true;
  const __u8 one = 1;
  return bpf_map_update_elem(&targets, &child_pid, &one, BPF_ANY) == 0;
}

/* A pid may be reused by another process. */
static __always_inline void forget_target(__u32 pid) {
  if (!every_process) bpf_map_delete_elem(&targets, &pid);
}

/* A per-CPU cache of look-ups: translating a thread's pid to a namespace and looking it up in the list costs
 * half a microsecond, which is much at ten thousand switches a second. */
#define CACHED_THREADS 256
#define CACHED_NS 100000000
struct thread_cache {
  struct cached_thread {
    __u64 until_ns;
    __u32 task_tid;
    __u32 changes;
    struct pids pids;
  } slots[CACHED_THREADS];
};

/* The pid and tid of a target's thread, zeros for other threads. A removal from the list takes effect within
 * CACHED_NS. `cache` is this CPU's, and may only be used by programs that don't interrupt each other. */
static __always_inline struct pids target_of(const struct task_struct *task, struct thread_cache *cache,
                                             __u64 now) {
  const struct pids none = {};
  if (!task->mm) return none;
  const __u32 tid = task->pid;
  struct cached_thread *slot = &cache->slots[tid % CACHED_THREADS];
  const __u32 zero = 0;
  const __u32 *changes = bpf_map_lookup_elem(&target_changes, &zero); /* compiled to an address */
  if (!changes) return none;
  const __u32 seen = *(const volatile __u32 *)changes; /* read before the list */
  if (slot->task_tid == tid && slot->changes == seen && now < slot->until_ns) return slot->pids;
  const struct pids pids = pids_of(task);
  slot->until_ns = now + CACHED_NS;
  slot->task_tid = tid;
  slot->changes = seen;
  slot->pids = pids.pid && wanted(pids.pid) ? pids : none;
  return slot->pids;
}
