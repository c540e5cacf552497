// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Takes the stack of whatever runs when a CPU's clock event fires, for the processes asked about and their
 * descendants, and hands it over through a ring buffer. Wakes user space only when the ring fills up: it
 * looks by itself a few times a second. */
#include "kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "wire/cpu_sample.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading: sample whatever runs, and look at no list. */
const volatile bool every_process = false;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20); /* resized before loading */
} samples SEC(".maps");

/* Thread groups to sample. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u32);
  __type(value, __u8);
} targets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, GPUSONDE_CPU_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

/* A sample under construction is too large for the stack. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct gpusonde_cpu_sample);
} scratch SEC(".maps");

static __always_inline void count(__u32 counter) {
  __u64 *value = bpf_map_lookup_elem(&counters, &counter);
  if (value) ++*value; /* per CPU, and this program isn't re-entered on one */
}

static __always_inline bool wanted(__u32 pid) {
  return every_process || bpf_map_lookup_elem(&targets, &pid) != NULL;
}

SEC("perf_event")
int take_sample(void *context) {
  const __u64 pid_tid = bpf_get_current_pid_tgid();
  const __u32 pid = pid_tid >> 32;
  if (pid == 0 || !wanted(pid)) return 0; /* 0: the idle task */

  const __u32 zero = 0;
  struct gpusonde_cpu_sample *sample = bpf_map_lookup_elem(&scratch, &zero);
  if (!sample) return 0;
  sample->time_ns = bpf_ktime_get_ns();
  sample->pid = pid;
  sample->tid = (__u32)pid_tid;
  sample->cpu = bpf_get_smp_processor_id();

  const __u32 room = GPUSONDE_MAX_FRAMES * sizeof(__u64);
  long kernel_bytes = bpf_get_stack(context, sample->frames, room, 0);
  if (kernel_bytes < 0) kernel_bytes = 0;
  if (kernel_bytes == room) count(GPUSONDE_STACK_TRUNCATED);
  /* The masks are no-ops that tell the verifier the bounds. */
  const __u32 kernel_frames = ((__u32)kernel_bytes / sizeof(__u64)) & 0x7f;

  long user_bytes = bpf_get_stack(context, &sample->frames[kernel_frames], room, BPF_F_USER_STACK);
  if (user_bytes < 0) {
    user_bytes = 0;
    /* A kernel thread has none and lacks nothing; what was running in user mode, or came from there, does. */
    if (kernel_frames == 0) count(GPUSONDE_NO_USER_STACK);
  }
  if (user_bytes == room) count(GPUSONDE_STACK_TRUNCATED);
  const __u32 user_frames = ((__u32)user_bytes / sizeof(__u64)) & 0x7f;

  sample->kernel_frames = kernel_frames;
  sample->user_frames = user_frames;

  const __u64 size =
      offsetof(struct gpusonde_cpu_sample, frames) + (kernel_frames + user_frames) * sizeof(__u64);
  const __u64 waiting = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
  const __u64 ring = bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE);
  const __u64 wake = waiting > ring / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
  if (bpf_ringbuf_output(&samples, sample, size, wake)) count(GPUSONDE_RING_FULL);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child) {
  if (every_process) return 0;
  const __u32 parent_pid = parent->tgid;
  if (!bpf_map_lookup_elem(&targets, &parent_pid)) return 0;
  const __u32 child_pid = child->tgid;
  const __u8 one = 1;
  if (bpf_map_update_elem(&targets, &child_pid, &one, BPF_ANY)) count(GPUSONDE_TARGETS_FULL);
  return 0;
}

/* A pid may be used again for a stranger, so the last thread to leave takes the entry along. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(forget_exit, struct task_struct *task) {
  if (every_process || task->signal->live.counter != 0) return 0;
  const __u32 pid = task->tgid;
  bpf_map_delete_elem(&targets, &pid);
  return 0;
}
