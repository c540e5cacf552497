// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums up, in buckets of 10 ms, the time that the threads of target processes spend in each state, and which
 * processes keep them from running (wire/host_signals.h). For other processes a context switch costs one
 * look-up in the thread cache. */
#include "sources/ebpf/bpf/kernel.h"

#include "sources/ebpf/bpf/pids.h"
#include "sources/ebpf/bpf/targets.h"
#include "wire/host_signals.h"

#define PROGRAM_COUNTERS GPUSONDE_SIGNAL_COUNTERS
#include "sources/ebpf/bpf/counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CPUS 1024 /* others are not looked at */
#include "sources/ebpf/bpf/sums.h"

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct gpusonde_signal_process);
} others SEC(".maps");

#define RUNS 16
#define BLAMED 64

struct run {
  __u64 since_ns;
  /* The memory may have been freed or reused; checked against the ids below. */
  struct task_struct *task;
  struct pid *process;
  __u32 task_tid;
  __u32 task_pid;
};

/* What each CPU runs now, for other CPUs to read. */
static struct {
  struct run run;
} __attribute__((aligned(64))) running[CPUS];

/* Per-CPU state. */
struct cpu {
  /* Interrupts in progress. */
  __u64 hard_ns; /* since when; 0: none */
  __u64 soft_ns;
  __u32 soft; /* number of the softirq in progress */
  bool timer; /* a timer's function runs: its interrupt raises neither of their tracepoints */

  /* The last threads that ran on it. More than the last one is needed: if two threads wait behind a third,
   * the second to be switched in has waited for both others. */
  __u32 next_run;
  struct run runs[RUNS];

  /* A cache of the pids of those that were blamed: finding and naming one takes half a microsecond. */
  struct blamed {
    __u64 until_ns;
    __u32 task_pid;
    __u32 pid;
  } blamed[BLAMED];

  struct thread_cache threads;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu);
} cpus SEC(".maps");

static __always_inline struct cpu *here(void) {
  const __u32 zero = 0;
  return bpf_map_lookup_elem(&cpus, &zero);
}

/* Adds [from, to) of a thread's time, split into buckets. */
__noinline int spend(struct thread *thread, __u32 signal, __u32 other, __u64 from, __u64 to) {
  if (!thread || to <= from) return 0;
  struct gpusonde_signal_key key = {.pid = thread->pid, .tid = thread->tid, .other = other, .signal = signal};
  const __u64 last = (to - 1) / GPUSONDE_SIGNAL_BUCKET_NS;
  if (from < last * GPUSONDE_SIGNAL_BUCKET_NS) { /* rare, and avoids a division of a dozen ns */
    __u64 bucket = from / GPUSONDE_SIGNAL_BUCKET_NS;
    if (last - bucket >= GPUSONDE_SIGNAL_SPREAD) bucket = last - GPUSONDE_SIGNAL_SPREAD + 1;
    for (int i = 0; i < GPUSONDE_SIGNAL_SPREAD - 1 && bucket < last; ++i, ++bucket) {
      const __u64 end = (bucket + 1) * GPUSONDE_SIGNAL_BUCKET_NS;
      key.bucket = (__u32)bucket;
      report_part(&key, end - from);
      from = end;
    }
  }
  key.bucket = (__u32)last;
  add_to_piece(thread, &key, to - from);
  return 0;
}

static __always_inline void describe(struct task_struct *task, struct gpusonde_signal_process *process) {
  struct task_struct *leader = BPF_CORE_READ(task, group_leader);
  process->started_ns = BPF_CORE_READ(leader, start_boottime);
  BPF_CORE_READ_STR_INTO(&process->name, leader, comm);
}

static __always_inline void name_other(__u32 pid, const struct gpusonde_signal_process *process) {
  /* An exec changes the name. */
  const struct gpusonde_signal_process *known = bpf_map_lookup_elem(&others, &pid);
  if (known && known->started_ns == process->started_ns &&
      !__builtin_memcmp(known->name, process->name, sizeof process->name))
    return;
  bpf_map_update_elem(&others, &pid, process, BPF_ANY);
}

/* The entry of a target's thread; null for other threads. */
static __always_inline struct thread *find_thread(struct task_struct *task, struct cpu *cpu, __u64 now) {
  const struct pids pids = target_of(task, &cpu->threads, now);
  if (!pids.pid) return NULL;
  const __u32 tid = task->pid;
  struct thread *thread = make_entry(tid);
  if (!thread) {
    count(GPUSONDE_SIGNAL_THREADS_FULL);
    return NULL;
  }
  if (!thread->id) {
    thread->pid = pids.pid;
    thread->tid = pids.tid;
    thread->id = tid;
  }
  return thread;
}

/* System calls that wait only for a timer, and for a futex, on x86-64. */
#define SYS_NANOSLEEP 35
#define SYS_FUTEX 202
#define SYS_CLOCK_NANOSLEEP 230

static __always_inline long system_call_of(struct task_struct *task) {
  const struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs(task);
  return (long)registers->orig_ax;
}

static __always_inline bool is_frozen(struct task_struct *task) {
  return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen) &&
         task->jobctl & JOBCTL_TRAP_FREEZE;
}

static __always_inline __u32 reason_to_leave(struct task_struct *task, __u32 state) {
  if (state & (STATE_STOPPED | STATE_TRACED | STATE_FROZEN) || is_frozen(task))
    return GPUSONDE_SIGNAL_STOPPED;
  if (BPF_CORE_READ_BITFIELD(task, in_iowait)) return GPUSONDE_SIGNAL_BLOCKED_IO;
  if (state & STATE_UNINTERRUPTIBLE) return GPUSONDE_SIGNAL_BLOCKED;
  const long call = system_call_of(task);
  return call == SYS_NANOSLEEP || call == SYS_CLOCK_NANOSLEEP ? GPUSONDE_SIGNAL_SLEEPING
                                                              : GPUSONDE_SIGNAL_WAITING;
}

static __always_inline void leave(struct task_struct *task, bool preempted, struct cpu *cpu, __u64 now) {
  struct thread *thread = find_thread(task, cpu, now);
  if (!thread) return;
  if (thread->on_cpu) spend(thread, GPUSONDE_SIGNAL_RUNNING, 0, thread->since_ns, now);
  const __u32 state = state_of(task);
  const bool runnable = preempted || state == 0;
  thread->on_cpu = 0;
  thread->since_ns = now;
  thread->woken_ns = runnable ? now : 0;
  thread->waker = 0;
  thread->signal = runnable ? GPUSONDE_SIGNAL_RUN_QUEUE : reason_to_leave(task, state);
  thread->in_futex = thread->signal == GPUSONDE_SIGNAL_WAITING && system_call_of(task) == SYS_FUTEX;
}

static __always_inline void note_run(struct cpu *cpu, struct task_struct *task, __u64 now) {
  struct run *run = &cpu->runs[cpu->next_run++ % RUNS];
  run->since_ns = now;
  run->task = task;
  if (pid_namespace) run->process = task->group_leader->thread_pid; /* two cache lines */
  run->task_tid = task->pid;
  run->task_pid = task->tgid;
  const __u32 number = bpf_get_smp_processor_id();
  if (number < CPUS) running[number].run = *run;
}

static __always_inline __u32 pid_of_run(const struct run *run) {
  if (!pid_namespace) return run->task_pid;
  struct upid first;
  const struct pid *process = run->process;
  if (bpf_core_read(&first, sizeof first, &process->numbers[0]) || (__u32)first.nr != run->task_pid) return 0;
  return number_in_namespace(&process);
}

/* The pid of the current process, whose name is recorded. */
static __always_inline __u32 name_current(void) {
  struct task_struct *task = bpf_get_current_task_btf();
  const __u32 pid = pids_of(task).pid;
  if (!pid) return 0;
  struct gpusonde_signal_process process;
  describe(task, &process);
  name_other(pid, &process);
  return pid;
}

/* The pid of the process of a run, whose name is recorded; 0: the idle task, or not known. */
static __always_inline __u32 runner(struct cpu *cpu, const struct run *run, __u64 now) {
  if (!run->task_pid) return 0;
  struct blamed *slot = &cpu->blamed[run->task_pid % BLAMED];
  if (slot->task_pid == run->task_pid && now < slot->until_ns) return slot->pid;
  const __u32 pid = pid_of_run(run);
  slot->until_ns = now + CACHED_NS;
  slot->task_pid = run->task_pid;
  slot->pid = pid;
  struct task_struct *task = run->task;
  if (!pid || (__u32)BPF_CORE_READ(task, pid) != run->task_tid) return pid;
  struct gpusonde_signal_process process;
  describe(task, &process);
  name_other(pid, &process);
  return pid;
}

/* A CPU chosen at random among those where a thread may run, without this one and those of other words of the
 * mask; CPUS: there is none. */
static __always_inline __u32 another_cpu(struct task_struct *task) {
  const __u32 number = bpf_get_smp_processor_id();
  if (number >= CPUS) return CPUS;
  __u64 allowed = 0;
  const struct cpumask *mask = BPF_CORE_READ(task, cpus_ptr);
  if (bpf_core_read(&allowed, sizeof allowed, &mask->bits[number / 64])) return CPUS;
  allowed &= ~(1ull << number % 64);
  if (!allowed) return CPUS;
  const __u32 turn = bpf_get_prandom_u32() % 64;
  const __u64 turned = allowed >> turn | allowed << (64 - turn) % 64;
  return number / 64 * 64 + (__builtin_ctzll(turned) + turn) % 64;
}

/* Hand-overs between threads wait for less, and are frequent: a look costs 0.1 us. */
#define SHORTEST_DISPLACED_NS 50000

/* Threads of one program wait for each other on one CPU because another program took the others: attributes
 * the delay to what runs on one of these. On average that is right, however many they are. */
static __always_inline void blame_displacer(struct thread *thread, struct task_struct *task, struct cpu *cpu,
                                            __u64 from, __u64 now, __u64 to) {
  const __u32 number = another_cpu(task);
  if (number >= CPUS) return;
  const struct run run = running[number].run;
  const __u32 pid = runner(cpu, &run, now);
  if (pid && pid != thread->pid && !wanted(pid)) spend(thread, GPUSONDE_SIGNAL_DISPLACED, pid, from, to);
}

/* Run-queue delay of a thread. */
struct delay {
  struct task_struct *task;
  __u64 woken;
  __u64 now;
  __u64 end; /* what came later is attributed */
};

/* Attributes a delay to four of this CPU's last runs, backwards from the `age`th last one: a call costs time,
 * and in a longer loop the verifier follows twice as many instructions. Returns 0 if there may be more
 * before. */
#define RUNS_AT_ONCE 4
__noinline int blame_runs(struct delay *delay, struct thread *thread, struct cpu *cpu, __u32 age) {
  if (!delay || !thread || !cpu) return 1;
  const __u64 woken = delay->woken, now = delay->now;
  __u64 end = delay->end;
  int done = 1;
  for (__u32 i = 0; i < RUNS_AT_ONCE; ++i) {
    const struct run *run = &cpu->runs[(cpu->next_run - age - i) % RUNS];
    if (run->since_ns > end || !run->since_ns) break;
    const __u64 begin = run->since_ns > woken ? run->since_ns : woken;
    if (end > begin) {
      const __u32 pid = runner(cpu, run, now);
      spend(thread, GPUSONDE_SIGNAL_RUN_QUEUE, pid, begin, end);
      if (end - begin >= SHORTEST_DISPLACED_NS && pid && (pid == thread->pid || wanted(pid)))
        blame_displacer(thread, delay->task, cpu, begin, now, end);
    }
    end = begin;
    if (end <= woken) break;
    if (i == RUNS_AT_ONCE - 1) done = 0;
  }
  delay->end = end;
  return done;
}

/* Attributes the part of a delay that is older than this CPU's last runs to the process that ran at a time
 * chosen at random within these. On average that is right if the CPU was used alike before. A thread of low
 * priority, or one among many, waits for hundreds of runs. */
__noinline int blame_as_later(struct delay *delay, struct thread *thread, struct cpu *cpu) {
  if (!delay || !thread || !cpu) return 0;
  const __u64 woken = delay->woken, now = delay->now, end = delay->end;
  __u32 pid = 0;
  if (end < now) {
    const __u64 then = end + bpf_get_prandom_u32() % (now - end);
    for (__u32 age = 1; age <= RUNS; ++age) {
      const struct run *run = &cpu->runs[(cpu->next_run - age) % RUNS];
      if (!run->since_ns || run->since_ns > then) continue;
      pid = runner(cpu, run, now);
      break;
    }
  }
  spend(thread, GPUSONDE_SIGNAL_RUN_QUEUE, pid, woken, end);
  if (pid && (pid == thread->pid || wanted(pid))) blame_displacer(thread, delay->task, cpu, woken, now, end);
  return 0;
}

/* Attributes [woken, now) of a thread's run-queue delay to the processes that ran on this CPU, backwards from
 * now. */
static __always_inline void blame(struct thread *thread, struct task_struct *task, struct cpu *cpu,
                                  __u64 woken, __u64 now) {
  if (woken >= now) return;
  struct delay delay = {.task = task, .woken = woken, .now = now, .end = now};
  for (__u32 age = 1; age <= RUNS && !blame_runs(&delay, thread, cpu, age); age += RUNS_AT_ONCE);
  if (delay.end > woken) blame_as_later(&delay, thread, cpu);
}

static __always_inline void arrive(struct task_struct *task, struct cpu *cpu, __u64 now) {
  struct thread *thread = find_thread(task, cpu, now);
  if (!thread) return;
  if (thread->since_ns && !thread->on_cpu) {
    /* An unseen arrival is known less exactly. */
    const __u64 earliest = thread->woken_ns > thread->since_ns ? thread->woken_ns : thread->since_ns;
    if (now < earliest) now = earliest;
    /* The wake-up was not seen: an interrupt woke it before it had left its CPU. */
    const __u64 woken = thread->woken_ns ? thread->woken_ns : now;
    /* A wait for a lock that a timer ended: Python's threads wait 5 ms at a time for the interpreter's lock.
     */
    const __u32 waker = !thread->waker && thread->in_futex ? thread->pid : thread->waker;
    spend(thread, thread->signal, waker, thread->since_ns, woken);
    blame(thread, task, cpu, woken, now);
  }
  thread->on_cpu = 1;
  thread->since_ns = now;
}

/* When a thread that leaves its CPU was switched in, if that was not seen; 0: it was. A Linux 6.18 for
 * virtual machines raises no tracepoints in its agent's tasks, so not when a thread follows one of them. */
static __always_inline __u64 unseen_arrival(struct task_struct *task, const struct cpu *cpu, __u64 now) {
  const struct run *last = &cpu->runs[(cpu->next_run - 1) % RUNS];
  if (last->task_tid == (__u32)task->pid || !last->since_ns) return 0;
  const __u64 ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
  return now - last->since_ns > ran ? now - ran : last->since_ns;
}

/* Adds what is known of a thread that runs now, and forgets it. */
__noinline int end_thread(__u32 id) {
  struct thread *thread = find_entry(id);
  if (!thread) return 0;
  if (thread->on_cpu) spend(thread, GPUSONDE_SIGNAL_RUNNING, 0, thread->since_ns, bpf_ktime_get_ns());
  finish_pieces(thread);
  forget_entry(id);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(signal_switch, bool preempted, struct task_struct *from, struct task_struct *to) {
  struct cpu *cpu = here();
  if (!cpu) return 0;
  const __u64 now = bpf_ktime_get_ns();
  const __u64 unseen = unseen_arrival(from, cpu, now);
  if (unseen) {
    arrive(from, cpu, unseen);
    note_run(cpu, from, unseen);
  }
  leave(from, preempted, cpu, now);
  /* Since Linux 6.16 a thread still has its memory at sched_process_exit, and may be switched out, and so
   * known again, before this last time. */
  if (!from->mm && state_of(from) & STATE_DEAD) end_thread(from->pid);
  arrive(to, cpu, now);
  note_run(cpu, to, now);
  return 0;
}

/* include/linux/interrupt.h */
#define SOFTIRQ_NET_TX 2
#define SOFTIRQ_NET_RX 3

static __always_inline bool in_network(void) {
  const struct cpu *cpu = here();
  return cpu && cpu->soft_ns && (cpu->soft == SOFTIRQ_NET_TX || cpu->soft == SOFTIRQ_NET_RX);
}

/* Whether this CPU handles an interrupt, which hits any process. */
static __always_inline bool in_interrupt(void) {
  const struct cpu *cpu = here();
  return !cpu || cpu->hard_ns || cpu->soft_ns || cpu->timer;
}

#include "sources/ebpf/bpf/waker.h"

SEC("tp_btf/sched_waking")
int BPF_PROG(signal_waking, struct task_struct *task) {
  if (!task->mm) return 0; /* a thread of the kernel, or one that ends: as in target_of */
  const __u32 tid = task->pid;
  struct thread *thread = find_entry(tid);
  if (!thread || thread->on_cpu || thread->woken_ns) return 0;
  thread->woken_ns = bpf_ktime_get_ns();
  /* Frozen in its sleep, which the kernel does without a switch, and woken from it meanwhile: when it was
   * frozen is not known, so all of the sleep counts. */
  if (state_of(task) & STATE_FROZEN) thread->signal = GPUSONDE_SIGNAL_STOPPED;
  if (thread->signal == GPUSONDE_SIGNAL_STOPPED) thread->waker = name_current();
  if (thread->signal != GPUSONDE_SIGNAL_WAITING) return 0;
  if (in_network()) {
    thread->signal = GPUSONDE_SIGNAL_NETWORK;
    struct task_struct *current = bpf_get_current_task_btf();
    if (!sends(current) && !(receives(current) && is_local(current))) return 0;
  } else if (in_interrupt()) {
    return 0;
  }
  const __u32 waker_tid = (__u32)bpf_get_current_pid_tgid();
  const struct thread *waker = find_entry(waker_tid);
  if (waker)
    thread->waker = waker->pid;
  else if (thread->woken_ns - thread->since_ns >= SHORTEST_NAMED_WAIT_NS &&
           (thread->signal == GPUSONDE_SIGNAL_WAITING || is_local(bpf_get_current_task_btf())))
    thread->waker = name_other_waker();
  return 0;
}

static __always_inline void interrupted(__u64 from, __u64 to) {
  const __u32 tid = (__u32)bpf_get_current_pid_tgid();
  if (!tid || !from) return;
  struct thread *thread = find_entry(tid);
  if (thread) spend(thread, GPUSONDE_SIGNAL_INTERRUPTED, 0, from, to);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(signal_irq_entry) {
  struct cpu *cpu = here();
  if (cpu) cpu->hard_ns = bpf_ktime_get_ns();
  return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(signal_irq_exit) {
  struct cpu *cpu = here();
  if (!cpu || !cpu->hard_ns) return 0;
  const __u64 now = bpf_ktime_get_ns();
  interrupted(cpu->hard_ns, now);
  if (cpu->soft_ns) cpu->soft_ns += now - cpu->hard_ns; /* counted once */
  cpu->hard_ns = 0;
  return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(signal_softirq_entry, __u32 number) {
  struct cpu *cpu = here();
  if (!cpu) return 0;
  cpu->soft_ns = bpf_ktime_get_ns();
  cpu->soft = number;
  return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(signal_softirq_exit) {
  struct cpu *cpu = here();
  if (!cpu) return 0;
  interrupted(cpu->soft_ns, bpf_ktime_get_ns());
  cpu->soft_ns = 0;
  return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(signal_timer_entry) {
  struct cpu *cpu = here();
  if (cpu) cpu->timer = true;
  return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(signal_timer_exit) {
  struct cpu *cpu = here();
  if (cpu) cpu->timer = false;
  return 0;
}

#include "sources/ebpf/bpf/reclaim.h"

SEC("tp_btf/block_bio_queue")
int BPF_PROG(signal_bio, struct bio *bio) {
  struct task_struct *task = bpf_get_current_task_btf();
  const struct pids pids = pids_of(task);
  if (!pids.pid) return 0;
  struct gpusonde_signal_process process;
  describe(task, &process);
  name_other(pids.pid, &process);
  struct gpusonde_signal_key key = {.bucket = (__u32)(bpf_ktime_get_ns() / GPUSONDE_SIGNAL_BUCKET_NS),
                                    .pid = pids.pid,
                                    .signal = GPUSONDE_SIGNAL_DISK_BYTES};
  add(&key, BPF_CORE_READ(bio, bi_iter.bi_size));
  return 0;
}

#include "sources/ebpf/bpf/network.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(signal_fork, struct task_struct *parent, struct task_struct *child) {
  if (parent->tgid == child->tgid) return 0; /* a thread */
  const __u32 parent_pid = pids_of(parent).pid;
  const __u32 child_pid = pids_of(child).pid;
  if (parent_pid && child_pid && !follow_child(parent_pid, child_pid)) count(GPUSONDE_SIGNAL_TARGETS_FULL);
  return 0;
}

/* Any thread may call execve, and is given the id of its process's first thread: nothing else tells that its
 * own id is free for a thread of another process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(signal_exec, struct task_struct *task, int old_tid) {
  if (old_tid != task->pid) end_thread(old_tid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(signal_exit, struct task_struct *task) {
  end_thread(task->pid);
  if (task->signal->live.counter == 0) forget_target(pids_of(task).pid);
  return 0;
}

/* User space runs this before it drains the sums, until it returns 0. */
SEC("syscall")
int signal_finish(void *context) {
  for (int i = 0; i < FINISHED_AT_ONCE; ++i) {
    if (times_taken == *(volatile __u32 *)&times_listed) return 0;
    const __u32 at = times_taken % UNFINISHED;
    __u32 *entry = bpf_map_lookup_elem(&unfinished, &at);
    const __u32 id = entry ? __sync_lock_test_and_set(entry, 0) : 0;
    if (!id) return 0; /* another CPU is about to write it: the next time */
    ++times_taken;
    finish_thread(id);
  }
  return 1;
}
