// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies what libgpusonde-inject.so reports at its USDT probes (src/inject/probes.h): a batch of bytes in the
 * process's memory, and on the launch channel the stack of the thread that makes the call. Only the type of
 * the first record is interpreted here. The batches of a process that exceeds its bytes per second are
 * dropped until the next second. */
#include "kernel.h"

#include <linux/ptrace.h>
#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/pids.h"
#include "sources/ebpf/bpf/stack.h"

/* Size of libbpf's table of probe argument specifications. We don't use them, but each attachment takes an
 * entry: about five per observed process. */
#define BPF_USDT_MAX_SPEC_CNT 2048
#include <bpf/usdt.bpf.h>

#include "wire/gpu_event.h"

#define PROGRAM_COUNTERS GPUSONDE_GPU_COUNTERS
#include "sources/ebpf/bpf/counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
const volatile __u64 bytes_per_second = 16 << 20;

/* CLOCK_MONOTONIC; user space requests one wake-up by the first batch, other than a launch, after this time.
 * 0: no request. */
__u64 wake_after_ns = 0;

/* Set once user space stops profiling. Detaching takes 0.1 s per probe; meanwhile totals would include
 * records whose probe is detached already. */
bool stopped = false;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20); /* resized before loading */
} messages SEC(".maps");

struct budget {
  __u64 second;
  __u64 bytes;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct budget);
} budgets SEC(".maps");

/* Messages are too large for the BPF stack and are built in slots. A uprobe's program may be preempted while
 * another thread runs it on the same CPU, so each run claims a slot of its own. */
struct message {
  struct gpusonde_gpu_message head;
  __u8 batch[GPUSONDE_GPU_BATCH_BYTES];
};
struct launch {
  struct gpusonde_gpu_message head;
  __u8 batch[GPUSONDE_GPU_LAUNCH_BYTES];
  struct gpusonde_stack stack;
};
struct slot {
  __u64 claimed;
  union stack_walk walk;
  union {
    struct message message;
    struct launch launch;
  };
};
#define SLOTS 4
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, __u32);
  __type(value, struct slot);
} slots SEC(".maps");

/* Whether the bytes are within the process's limit. */
static __always_inline bool admit(__u32 pid, __u64 bytes) {
  const __u64 second = bpf_ktime_get_ns() / 1000000000;
  struct budget *budget = bpf_map_lookup_elem(&budgets, &pid);
  if (!budget) {
    const struct budget fresh = {.second = second, .bytes = bytes};
    bpf_map_update_elem(&budgets, &pid, &fresh, BPF_ANY);
    return true;
  }
  if (budget->second != second) {
    budget->second = second;
    budget->bytes = 0;
  }
  if (__sync_fetch_and_add(&budget->bytes, bytes) + bytes <= bytes_per_second) return true;
  count(GPUSONDE_GPU_OVER_BUDGET);
  return false;
}

static __always_inline struct slot *claim_slot(void) {
  for (__u32 i = 0; i < SLOTS; ++i) {
    const __u32 index = i;
    struct slot *slot = bpf_map_lookup_elem(&slots, &index);
    if (slot && __sync_val_compare_and_swap(&slot->claimed, 0, 1) == 0) return slot;
  }
  count(GPUSONDE_GPU_BUSY);
  return NULL;
}

static __always_inline void release_slot(struct slot *slot) { __sync_fetch_and_and(&slot->claimed, 0); }

static __always_inline void begin(struct gpusonde_gpu_message *head, struct pids pids, __u32 bytes) {
  head->time_ns = bpf_ktime_get_ns();
  head->pid = pids.pid;
  head->tid = pids.tid;
  head->batch_bytes = bytes;
  head->stack_bytes = 0;
}

static __always_inline void send(void *message, __u64 size, bool wake) {
  const __u64 waiting = bpf_ringbuf_query(&messages, BPF_RB_AVAIL_DATA);
  const __u64 ring = bpf_ringbuf_query(&messages, BPF_RB_RING_SIZE);
  wake |= waiting > ring / 4;
  if (bpf_ringbuf_output(&messages, message, size, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
    count(GPUSONDE_GPU_RING_FULL);
}

static __always_inline bool asked_to_wake(void) {
  const __u64 after = wake_after_ns;
  return after && bpf_ktime_get_ns() >= after &&
         __sync_val_compare_and_swap(&wake_after_ns, after, 0) == after;
}

/* Whether a session begins or is joined. Then user space prepares the process's unwind tables, for which the
 * process may be waiting. */
static __always_inline bool begins_session(const struct message *message, __u64 bytes) {
  const struct gpusonde_gpu_record *first =
      (const void *)(message->batch + sizeof(struct gpusonde_gpu_batch));
  return bytes >= sizeof(struct gpusonde_gpu_batch) + sizeof *first &&
         (first->type == GPUSONDE_GPU_SESSION_BEGIN || first->type == GPUSONDE_GPU_SNAPSHOT_BEGIN);
}

static __always_inline void send_batch(struct message *message, struct pids pids, const void *batch,
                                       __u64 bytes) {
  if (bytes > sizeof message->batch || bpf_probe_read_user(message->batch, bytes, batch)) {
    count(GPUSONDE_GPU_UNREADABLE);
    return;
  }
  begin(&message->head, pids, bytes);
  send(message, offsetof(struct message, batch) + bytes, begins_session(message, bytes) || asked_to_wake());
}

static __always_inline void send_launch(struct pt_regs *context, struct launch *launch,
                                        union stack_walk *walk, struct pids pids, const void *batch,
                                        __u64 bytes) {
  if (bytes > sizeof launch->batch || bpf_probe_read_user(launch->batch, bytes, batch)) {
    count(GPUSONDE_GPU_UNREADABLE);
    return;
  }
  begin(&launch->head, pids, bytes);
  bool wake = false;
  const __u64 stack_bytes = take_stack(context, pids.pid, false, walk, &launch->stack, &wake);
  launch->head.stack_bytes = stack_bytes;
  const __u64 size = offsetof(struct launch, stack) + stack_bytes;
  if (size <= sizeof *launch) send(launch, size, wake);
}

/* Probes state, records and snapshot. */
SEC("usdt")
int on_batch(struct pt_regs *context) {
  const struct pids pids = current_pids();
  const void *batch = (const void *)PT_REGS_PARM1(context);
  const __u64 bytes = PT_REGS_PARM2(context);
  if (stopped || !pids.pid || !admit(pids.pid, bytes)) return 0;
  struct slot *slot = claim_slot();
  if (!slot) return 0;
  send_batch(&slot->message, pids, batch, bytes);
  release_slot(slot);
  return 0;
}

/* Probe launch. */
SEC("usdt")
int on_launch(struct pt_regs *context) {
  const struct pids pids = current_pids();
  const void *batch = (const void *)PT_REGS_PARM1(context);
  const __u64 bytes = PT_REGS_PARM2(context);
  if (stopped || !pids.pid || !admit(pids.pid, bytes)) return 0;
  struct slot *slot = claim_slot();
  if (!slot) return 0;
  send_launch(context, &slot->launch, &slot->walk, pids, batch, bytes);
  release_slot(slot);
  return 0;
}
