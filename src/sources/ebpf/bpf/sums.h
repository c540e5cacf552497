/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sums of host_signals.bpf.c, and what its threads keep of them until it is added. Include it after
 * counters.h. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include "wire/host_signals.h"

/* Two maps of sums: user space drains the one that isn't being written. Preallocated, as nothing may be
 * allocated within the scheduler. */
struct sums {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, struct gpusonde_signal_key);
  __type(value, __u64);
} sums_even SEC(".maps"), sums_odd SEC(".maps");

__u32 written = 0; /* odd: sums_odd is written */

/* Parts of sums that nothing will be added to: a thread that changes state a hundred times a second finishes
 * one with most changes, and inserting it into a map takes several times as long. A thread that changes
 * state all the time finishes 500 a second; those that find no room are added to the maps. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20); /* resized before loading */
} parts SEC(".maps");

/* A thread that switches a thousand times a second mostly adds to the same bucket as before, and a map
 * look-up costs a quarter of a microsecond. So the sum of the current bucket of each of a thread's own
 * signals (a piece) is kept with the thread until a later bucket begins: the first eight pieces without
 * `other`, the next eight with its own process as `other`. */
#define OWN_SIGNALS (GPUSONDE_SIGNAL_INTERRUPTED + 1)
#define PIECES (2 * OWN_SIGNALS)

/* Of each thread of a target. */
struct thread {
  __u64 since_ns;   /* when it was last switched in or out */
  __u64 woken_ns;   /* 0: not yet */
  __u64 reclaim_ns; /* since when it has been in direct reclaim; 0: it isn't */
  __u32 pid;
  __u32 tid;
  __u32 id;     /* its key */
  __u32 listed; /* whether it is in `unfinished` */
  __u32 waker;  /* pid */
  __u8 on_cpu;
  __u8 signal;          /* its state while it is off its CPU and not woken */
  __u8 in_futex;        /* if it waits: for a lock or a condition of its own process, most likely */
  __u64 pieces[PIECES]; /* 32 bits of bucket number, and 32 bits of ns not yet added to the sums */
};

struct thread_slot {
  __u32 tid;
  __u32 crowded;
  struct thread entry;
} __attribute__((aligned(64)));

#define THREAD_ENTRY struct thread
#define THREAD_SLOT struct thread_slot
#include "sources/ebpf/bpf/thread_entries.h"

/* A ring of the threads that have pieces, by their keys; 0: none, or not written yet. User space has the
 * pieces finished once a second, and a look at each of the slots of threads would take 0.3 ms. */
#define UNFINISHED 16384
#define FINISHED_AT_ONCE 64
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNFINISHED);
  __type(key, __u32);
  __type(value, __u32);
} unfinished SEC(".maps");

__u32 times_listed = 0; /* how often threads were put into the ring */
__u32 times_taken = 0;  /* and taken out of it */

static __always_inline void add_to(void *sums, const struct gpusonde_signal_key *key, __u64 amount) {
  __u64 *sum = bpf_map_lookup_elem(sums, key);
  if (!sum) {
    if (!bpf_map_update_elem(sums, key, &amount, BPF_NOEXIST)) return;
    sum = bpf_map_lookup_elem(sums, key); /* another CPU was faster, or there is no room */
  }
  if (sum)
    __sync_fetch_and_add(sum, amount);
  else
    count(GPUSONDE_SIGNAL_SUMS_FULL);
}

static __always_inline void add(const struct gpusonde_signal_key *key, __u64 amount) {
  /* In separate branches, as a look-up in a map known at load time is not an indirect call. */
  if (written & 1) {
    add_to(&sums_odd, key, amount);
    barrier();
  } else {
    add_to(&sums_even, key, amount);
  }
}

/* Reports what nothing will be added to. A global function is verified once, and not at each call on each
 * path. */
__noinline int report_part(const struct gpusonde_signal_key *key, __u64 amount) {
  if (!key) return 0;
  struct gpusonde_signal_part part = {.key = *key, .amount = amount};
  if (bpf_ringbuf_output(&parts, &part, sizeof part, BPF_RB_NO_WAKEUP)) add(key, amount);
  return 0;
}

static __always_inline void finish_piece(const struct thread *thread, __u32 index, __u64 piece) {
  if (!(__u32)piece) return;
  const struct gpusonde_signal_key key = {.bucket = piece >> 32,
                                          .pid = thread->pid,
                                          .tid = thread->tid,
                                          .other = index < OWN_SIGNALS ? 0 : thread->pid,
                                          .signal = index % OWN_SIGNALS};
  report_part(&key, (__u32)piece);
}

/* Puts a thread with pieces into the ring. Where that is full, the pieces wait for the next time. */
static __always_inline void list_thread(struct thread *thread) {
  if (thread->listed || __sync_lock_test_and_set(&thread->listed, 1)) return;
  /* So many CPUs may pass this at the same time. */
  if (times_listed - *(volatile __u32 *)&times_taken >= UNFINISHED - CPUS) {
    thread->listed = 0;
    return;
  }
  const __u32 at = __sync_fetch_and_add(&times_listed, 1) % UNFINISHED;
  __u32 *entry = bpf_map_lookup_elem(&unfinished, &at);
  if (entry) *(volatile __u32 *)entry = thread->id;
}

static __always_inline void finish_pieces(struct thread *thread) {
  for (__u32 i = 0; i < PIECES; ++i)
    if (thread->pieces[i]) finish_piece(thread, i, __sync_lock_test_and_set(&thread->pieces[i], 0));
}

/* Adds to a thread's piece. User space may finish it at the same time. */
static __always_inline void add_to_piece(struct thread *thread, const struct gpusonde_signal_key *key,
                                         __u64 amount) {
  if (key->signal >= OWN_SIGNALS || (key->other && key->other != thread->pid)) {
    add(key, amount);
    return;
  }
  const __u32 index = key->other ? OWN_SIGNALS + key->signal : key->signal;
  __u64 *piece = &thread->pieces[index % PIECES];
  const __u64 before = *(volatile __u64 *)piece;
  if (before >> 32 != key->bucket)
    finish_piece(thread, index, __sync_lock_test_and_set(piece, (__u64)key->bucket << 32 | amount));
  else if (__sync_val_compare_and_swap(piece, before, before + amount) != before)
    report_part(key, amount);
  list_thread(thread);
}

/* A thread is listed again by what it adds from now on. */
__noinline int finish_thread(__u32 id) {
  struct thread *thread = find_entry(id);
  if (!thread) return 0; /* it ended */
  __sync_lock_test_and_set(&thread->listed, 0);
  finish_pieces(thread);
  return 0;
}
