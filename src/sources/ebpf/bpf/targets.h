/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes a program tells of. Include it once in a program. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

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
