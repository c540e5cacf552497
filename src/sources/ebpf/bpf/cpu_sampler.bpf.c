// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples the stack of the running thread when a CPU's clock event fires, for the target processes and their
 * descendants, and emits it through a ring buffer. User space polls a few times a second; it is woken only
 * when the ring fills up, or when it has to inspect a process or code object before that is gone. */
#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/pids.h"
#include "sources/ebpf/bpf/stack.h"
#include "sources/ebpf/bpf/targets.h"
#include "wire/cpu_sample.h"

#define PROGRAM_COUNTERS GPUSONDE_CPU_COUNTERS
#include "sources/ebpf/bpf/counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20); /* resized before loading */
} samples SEC(".maps");

/* A sample under construction is too large for the stack. */
struct work {
  struct gpusonde_cpu_sample sample;
  union stack_walk walk;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct work);
} scratch SEC(".maps");

SEC("perf_event")
int take_sample(void *context) {
  const struct pids pids = current_pids();
  if (pids.pid == 0 || !wanted(pids.pid)) return 0;

  const __u32 zero = 0;
  struct work *work = bpf_map_lookup_elem(&scratch, &zero);
  if (!work) return 0;
  struct gpusonde_cpu_sample *sample = &work->sample;
  sample->time_ns = bpf_ktime_get_ns();
  sample->pid = pids.pid;
  sample->tid = pids.tid;
  sample->cpu = bpf_get_smp_processor_id();
  sample->unused = 0;

  bool wake = false;
  const __u64 stack_bytes = take_stack(context, pids.pid, true, &work->walk, &sample->stack, &wake);
  const __u64 size = offsetof(struct gpusonde_cpu_sample, stack) + stack_bytes;
  const __u64 waiting = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
  const __u64 ring = bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE);
  wake |= waiting > ring / 4;
  if (size <= sizeof *sample &&
      bpf_ringbuf_output(&samples, sample, size, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
    count(GPUSONDE_RING_FULL);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child) {
  if (parent->tgid == child->tgid) return 0; /* a thread */
  const __u32 parent_pid = pids_of(parent).pid;
  const __u32 child_pid = pids_of(child).pid;
  if (!parent_pid || !child_pid) return 0;
  /* The child begins as a copy of its parent. */
  const struct gpusonde_process *process = bpf_map_lookup_elem(&processes, &parent_pid);
  if (process) bpf_map_update_elem(&processes, &child_pid, process, BPF_ANY);
  if (!follow_child(parent_pid, child_pid)) count(GPUSONDE_TARGETS_FULL);
  return 0;
}

/* After an exec the process's registration is out of date. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(forget_program, struct task_struct *task) {
  const __u32 pid = pids_of(task).pid;
  bpf_map_delete_elem(&processes, &pid);
  return 0;
}

/* A pid may be reused by another process, so the exit of the last thread removes the entries. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(forget_exit, struct task_struct *task) {
  if (task->signal->live.counter != 0) return 0;
  const __u32 pid = pids_of(task).pid;
  bpf_map_delete_elem(&processes, &pid);
  forget_target(pid);
  return 0;
}
