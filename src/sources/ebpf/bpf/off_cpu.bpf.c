// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports threads' off-CPU intervals, with stacks (wire/off_cpu.h). Busy machines switch threads some ten
 * thousand times a second, and a stack costs microseconds: short intervals are sampled, with a probability
 * (`chance`) that keeps the number of stacks per CPU below a budget. */
#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/stack.h"
#include "sources/ebpf/bpf/targets.h" /* cpu_sampler.bpf.c's own */
#include "wire/off_cpu.h"

#define PROGRAM_COUNTERS GPUSONDE_OFF_CPU_COUNTERS
#include "sources/ebpf/bpf/counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading: stacks per second and CPU. */
const volatile __u32 budget = 99;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20); /* resized before loading */
} events SEC(".maps");

/* Set once the program that takes stacks when threads are switched in again is attached. */
volatile bool late_stacks = false;

/* The last absence of each thread. Entries are reused until the thread ends, and not made and dropped at each
 * switch. */
#define THREAD_ENTRY struct gpusonde_off_cpu_absence
#define THREAD_SLOT struct gpusonde_off_cpu_slot
#include "sources/ebpf/bpf/thread_entries.h"

/* The number of threads that left a CPU in one second sets the sampling probability for the next. */
struct governor {
  __u64 second;
  __u32 left;
  __u32 chance; /* × 2^32, minus 1 */
};

/* Per-CPU state. */
struct cpu {
  struct governor governor;
  struct thread_cache threads;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu);
} cpus SEC(".maps");

struct work {
  struct gpusonde_off_cpu_begin begin;
  union stack_walk walk;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct work);
} scratch SEC(".maps");

/* The sampling probability of a thread that leaves this CPU now, × 2^32, minus 1. */
static __always_inline __u32 chance_now(struct governor *governor, __u64 now_ns) {
  const __u64 second = now_ns / 1000000000;
  if (governor->second != second) {
    /* After a second without switches, assume a low rate. */
    const __u32 before = governor->second + 1 == second ? governor->left : 0;
    governor->chance = before > budget ? (__u32)((((__u64)budget << 32) - 1) / before) : 0xffffffff;
    governor->second = second;
    governor->left = 0;
  }
  /* In a burst the probability is reduced within the second, and reported with each interval. */
  const __u32 left = ++governor->left;
  if (left > 2 * budget && governor->chance > 0xffffffff / (left / budget))
    governor->chance = 0xffffffff / (left / budget);
  return governor->chance;
}

/* Emits a begin, whose head is filled in, with the current thread's stack. Must not wake the reader, as the
 * scheduler holds its locks. */
static __always_inline bool send_begin(void *context, struct work *work, __u64 now) {
  work->begin.taken_ns = now;
  const __u64 stack_bytes =
      take_stack(context, work->begin.head.pid, true, &work->walk, &work->begin.stack, NULL);
  const __u64 size = offsetof(struct gpusonde_off_cpu_begin, stack) + stack_bytes;
  const bool failed =
      size <= sizeof work->begin && bpf_ringbuf_output(&events, &work->begin, size, BPF_RB_NO_WAKEUP);
  if (failed) count(GPUSONDE_OFF_CPU_RING_FULL);
  return failed;
}

static __always_inline void send_end(const struct gpusonde_off_cpu_absence *absence, __u64 end_ns) {
  struct gpusonde_off_cpu_end end = {.kind = GPUSONDE_OFF_CPU_END,
                                     .tid = absence->head.tid,
                                     .begin_ns = absence->head.time_ns,
                                     .woken_ns = absence->woken_ns,
                                     .end_ns = end_ns};
  /* The wake-up was not seen: an interrupt woke it before it had left its CPU. */
  if (end.woken_ns < end.begin_ns || end.woken_ns > end.end_ns) end.woken_ns = end.end_ns;
  const __u32 limit_ns = absence->head.sampled ? absence->head.limit_ns : GPUSONDE_OFF_CPU_LONG_NS;
  if (end.woken_ns - end.begin_ns < limit_ns && end.end_ns - end.woken_ns < limit_ns) return;
  if (bpf_ringbuf_output(&events, &end, sizeof end, BPF_RB_NO_WAKEUP)) count(GPUSONDE_OFF_CPU_RING_FULL);
}

static __always_inline void leave(void *context, bool preempted, struct task_struct *task) {
  const __u32 tid = task->pid;
  if (!task->mm) { /* a thread of the kernel, or one that ends */
    if (state_of(task) & STATE_DEAD) forget_entry(tid);
    return;
  }
  const __u32 zero = 0;
  struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
  if (!cpu) return;
  const __u64 now = bpf_ktime_get_ns();
  const struct pids pids = target_of(task, &cpu->threads, now);
  if (!pids.pid) return;
  const __u32 state = state_of(task);
  const bool runnable = preempted || state == 0;
  const __u32 chance = chance_now(&cpu->governor, now);
  const bool sampled = bpf_get_prandom_u32() <= chance;
  /* A runnable thread waits half a second for a CPU only on an overloaded machine, where there are many
   * samples. */
  if (!sampled && (runnable || !late_stacks)) return;

  struct gpusonde_off_cpu_absence *absence = make_entry(tid);
  if (!absence) {
    count(GPUSONDE_OFF_CPU_TOO_MANY);
    return;
  }
  struct gpusonde_off_cpu_head *head = &absence->head;
  head->kind = GPUSONDE_OFF_CPU_BEGIN;
  head->pid = pids.pid;
  head->tid = pids.tid;
  head->cpu = bpf_get_smp_processor_id();
  head->time_ns = now;
  head->limit_ns = (__u32)(((__u64)bpf_get_prandom_u32() * GPUSONDE_OFF_CPU_WHOLE_NS) >> 32);
  head->chance = chance;
  const struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs(task);
  head->syscall = (__s32)registers->orig_ax;
  head->futex_op = (__u32)registers->si;
  head->futex_value = (__u32)registers->dx;
  head->runnable = runnable;
  head->in_io = BPF_CORE_READ_BITFIELD(task, in_iowait);
  head->uninterruptible = (state & STATE_UNINTERRUPTIBLE) != 0;
  head->sampled = sampled;
  absence->woken_ns = runnable ? now : 0;
  absence->end_ns = 0;
  if (!sampled) return;

  struct work *work = bpf_map_lookup_elem(&scratch, &zero);
  if (!work) return;
  work->begin.head = *head;
  if (send_begin(context, work, now)) head->time_ns = 0;
}

/* The thread's last absence; null if it can't be away. Only threads with memory have absences (leave): the
 * idle task and the kernel's threads, often half of those that are switched to, need no look-up. */
static __always_inline struct gpusonde_off_cpu_absence *last_absence(const struct task_struct *task) {
  return task->mm ? find_entry(task->pid) : NULL;
}

/* Ends a thread's interval off the CPU. Returns it if its stack is still to be taken, else null. */
static __always_inline struct gpusonde_off_cpu_absence *come_back(const struct task_struct *task) {
  struct gpusonde_off_cpu_absence *absence = last_absence(task);
  if (!absence || !absence->head.time_ns) return NULL;
  const __u64 now = bpf_ktime_get_ns();
  if (!absence->head.sampled && now - absence->head.time_ns >= GPUSONDE_OFF_CPU_LONG_NS) {
    absence->end_ns = now; /* resume() completes it once the thread is current */
    return absence;
  }
  if (absence->head.sampled) send_end(absence, now);
  absence->head.time_ns = 0;
  return NULL;
}

/* Runs after the switch, when the thread is current and its memory can be read. */
static __always_inline void resume(void *context) {
  const struct task_struct *task = bpf_get_current_task_btf();
  struct gpusonde_off_cpu_absence *absence = last_absence(task);
  if (!absence || !absence->head.time_ns) return;
  /* sched_switch was not seen: a Linux 6.18 for virtual machines raises no tracepoints in its agent's tasks,
   * so not when a thread preempts one of them. */
  if (!absence->end_ns) absence = come_back(task);
  if (!absence) return;
  const __u32 zero = 0;
  struct work *work = bpf_map_lookup_elem(&scratch, &zero);
  if (!work) return;
  work->begin.head = absence->head;
  if (!send_begin(context, work, absence->end_ns)) send_end(absence, absence->end_ns);
  absence->head.time_ns = 0;
}

/* Only one of the two is loaded; the tracepoint exists since Linux 6.16. */
SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(resume_by_tracepoint, bool is_switch) {
  resume(ctx);
  return 0;
}

SEC("?kprobe")
int resume_by_probe(void *context) {
  resume(context);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switch_threads, bool preempted, struct task_struct *from, struct task_struct *to) {
  come_back(to);
  leave(ctx, preempted, from);
  return 0;
}

/* Any thread may call execve, and is given the id of its process's first thread: nothing else tells that its
 * own id is free for a thread of another process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(forget_old_id, struct task_struct *task, int old_tid) {
  if (old_tid != task->pid) forget_entry(old_tid);
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wake_thread, struct task_struct *task) {
  struct gpusonde_off_cpu_absence *absence = last_absence(task);
  if (absence && !absence->woken_ns) absence->woken_ns = bpf_ktime_get_ns();
  return 0;
}
