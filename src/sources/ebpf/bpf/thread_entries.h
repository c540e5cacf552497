/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a program remembers of each thread, by the thread's id in the initial pid namespace. Include it once
 * in a program, which defines before
 *
 *   THREAD_ENTRY  the type of what it remembers
 *   THREAD_SLOT   a type with a multiple of 64 bytes and
 *                   u32 tid             whose slot it is; 0: nobody's, and the entry is zeros
 *                   u32 crowded         whether there may be entries in the hash map that belong here
 *                   THREAD_ENTRY entry
 *
 * A thread's entry is in the slot of an array that its id chooses, and only where that is another thread's in
 * a hash map. A look-up in an array is compiled to an addition, while one in a hash map is a call that reads
 * the map's head, a bucket and the entry, all of which the programs between two switches have mostly
 * displaced from the CPU's cache. Preallocated, as nothing may be allocated within the scheduler. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#define THREAD_SLOTS 16384 /* a power of two: ids are given in turn */
#define CROWDED_THREADS 8192

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE); /* begins at a page, so that slots begin at cache lines */
  __uint(max_entries, THREAD_SLOTS);
  __type(key, __u32);
  __type(value, THREAD_SLOT);
} thread_slots SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, CROWDED_THREADS);
  __type(key, __u32);
  __type(value, THREAD_ENTRY);
} crowded_threads SEC(".maps");

static __always_inline THREAD_SLOT *slot_of(__u32 tid) {
  const __u32 index = tid % THREAD_SLOTS;
  return bpf_map_lookup_elem(&thread_slots, &index);
}

/* The thread's entry; null if it has none. */
static __always_inline THREAD_ENTRY *find_entry(__u32 tid) {
  THREAD_SLOT *slot = slot_of(tid);
  if (!slot) return NULL;
  if (slot->tid == tid) return &slot->entry;
  return slot->crowded ? bpf_map_lookup_elem(&crowded_threads, &tid) : NULL;
}

/* The same, but a thread without an entry is given one of zeros; null if there is no room. */
static __always_inline THREAD_ENTRY *make_entry(__u32 tid) {
  THREAD_SLOT *slot = slot_of(tid);
  if (!slot) return NULL;
  if (slot->tid == tid) return &slot->entry;
  if (slot->crowded) {
    THREAD_ENTRY *crowded = bpf_map_lookup_elem(&crowded_threads, &tid);
    if (crowded) return crowded;
  }
  if (!slot->tid && !__sync_val_compare_and_swap(&slot->tid, 0, tid)) return &slot->entry;
  const THREAD_ENTRY none = {};
  slot->crowded = true;
  if (bpf_map_update_elem(&crowded_threads, &tid, &none, BPF_ANY)) return NULL;
  return bpf_map_lookup_elem(&crowded_threads, &tid);
}

/* The thread ends, or its id will be another's. */
static __always_inline void forget_entry(__u32 tid) {
  THREAD_SLOT *slot = slot_of(tid);
  if (!slot) return;
  if (slot->tid == tid) {
    const THREAD_ENTRY none = {};
    slot->entry = none;
    barrier();
    slot->tid = 0;
  } else if (slot->crowded) {
    bpf_map_delete_elem(&crowded_threads, &tid);
  }
}
