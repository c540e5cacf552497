/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes the stack of the current thread, in the same way at any event: a clock, a uprobe. Include it once in
 * a program. User space fills the maps of processes and unwind tables (sources/ebpf/stack_tables.h), one set
 * for all programs; each program has its own other maps, because a clock may interrupt a uprobe's program on
 * the same CPU. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>
#include <stddef.h>

#include "sources/ebpf/bpf/python.h"
#include "wire/stack.h"

/* Registered thread groups. A program that samples an unregistered one inserts an empty entry and wakes user
 * space, which fills it in. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct gpusonde_process);
} processes SEC(".maps");

/* Unwind tables: the processes' mappings, the tables of the mapped files, and the rules of all files. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, GPUSONDE_UNWIND_MAPPINGS);
  __type(key, __u32);
  __type(value, struct gpusonde_unwind_mapping);
} unwind_mappings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, GPUSONDE_UNWIND_SHARDS);
  __type(key, __u32);
  __array(
      values, struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, GPUSONDE_UNWIND_SHARD_WORDS * sizeof(__u32));
      });
} unwind_shards SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, GPUSONDE_UNWIND_RULES);
  __type(key, __u32);
  __type(value, struct gpusonde_unwind_rule);
} unwind_rules SEC(".maps");

static __always_inline bool unwind_read(__u64 address, __u64 *value) {
  return bpf_probe_read_user(value, sizeof *value, (void *)address) == 0;
}
static __always_inline bool unwind_read_words(__u64 address, __u64 *values, __u32 count) {
  return bpf_probe_read_user(values, count * sizeof *values, (void *)address) == 0;
}
static __always_inline const struct gpusonde_unwind_mapping *unwind_mapping(__u32 index) {
  return bpf_map_lookup_elem(&unwind_mappings, &index);
}
static __always_inline const __u32 *unwind_shard(__u32 index) {
  const __u32 zero = 0;
  void *shard = bpf_map_lookup_elem(&unwind_shards, &index);
  return shard ? bpf_map_lookup_elem(shard, &zero) : NULL;
}
static __always_inline const struct gpusonde_unwind_rule *unwind_rule(__u32 index) {
  return bpf_map_lookup_elem(&unwind_rules, &index);
}

static __always_inline __u64 unwind_thread_pointer(void) { return bpf_get_current_task_btf()->thread.fsbase; }

#include "sources/ebpf/bpf/unwind.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, GPUSONDE_STACK_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} stack_counters SEC(".maps");

/* take_stack's scratch memory, too large for the BPF stack. It is the caller's, because a program may be
 * preempted by another thread's run of it. */
union stack_walk {
  struct unwind_walk native;
  struct python_walk python;
};

static __always_inline void count_stack(__u32 counter) {
  __u64 *value = bpf_map_lookup_elem(&stack_counters, &counter);
  if (value) __sync_fetch_and_add(value, 1); /* a uprobe's program may be preempted by another's */
}

/* Native frames by the kernel's own unwinder, which follows frame pointers: for processes that aren't
 * registered yet.
 */
static __always_inline void take_frames_by_pointer(void *context, struct gpusonde_stack *stack) {
  const __u32 room = GPUSONDE_MAX_FRAMES * sizeof(__u64);
  /* The masks have no effect; they prove the bounds to the verifier. */
  const __u32 place = stack->counts.kernel_frames & 0x7f;
  long bytes = bpf_get_stack(context, &stack->words[place], room, BPF_F_USER_STACK);
  if (bytes < 0) {
    bytes = 0;
    count_stack(GPUSONDE_NO_USER_STACK);
  }
  stack->counts.user_frames = ((__u32)bytes / sizeof(__u64)) & 0x7f;
  stack->counts.native_end = GPUSONDE_NATIVE_FRAME_POINTERS;
}

static __always_inline void take_native_frames(struct gpusonde_process *process, struct unwind_walk *walk,
                                               struct gpusonde_stack *stack, bool *wake) {
  const struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
  walk->process = process->unwind;
  walk->pc = registers->ip;
  walk->registers[0] = registers->ax;
  walk->registers[1] = registers->dx;
  walk->registers[2] = registers->cx;
  walk->registers[3] = registers->bx;
  walk->registers[4] = registers->si;
  walk->registers[5] = registers->di;
  walk->registers[GPUSONDE_DWARF_RBP] = registers->bp;
  walk->registers[GPUSONDE_DWARF_RSP] = registers->sp;
  walk->registers[8] = registers->r8;
  walk->registers[9] = registers->r9;
  walk->registers[10] = registers->r10;
  walk->registers[11] = registers->r11;
  walk->registers[12] = registers->r12;
  walk->registers[13] = registers->r13;
  walk->registers[14] = registers->r14;
  walk->registers[15] = registers->r15;
  walk->exact = 1;
  walk->first = 1;
  int end;
  stack->counts.user_frames = unwind_frames(walk, stack, stack->counts.kernel_frames, &end);
  stack->counts.native_end = end;
  /* There may be new mappings: user space is woken once, until it has updated the process. */
  if (wake && end == GPUSONDE_NATIVE_NO_MAPPING && !process->asked) *wake = process->asked = true;
}

/* Fills in `stack` for the thread group `pid`, which must be the current one. Returns the number of its bytes
 * used. Sets `wake` if user space should be woken to inspect something before it is gone; with null nothing
 * can be woken here, and unregistered processes are left to programs that can. */
static __always_inline __u64 take_stack(void *context, __u32 pid, bool with_kernel, union stack_walk *walk,
                                        struct gpusonde_stack *stack, bool *wake) {
  const struct gpusonde_stack_counts none = {};
  stack->counts = none;
  const __u32 room = GPUSONDE_MAX_FRAMES * sizeof(__u64);
  const long bytes = with_kernel ? bpf_get_stack(context, stack->words, room, 0) : 0;
  if (bytes == room) count_stack(GPUSONDE_STACK_TRUNCATED);
  if (bytes > 0) stack->counts.kernel_frames = ((__u32)bytes / sizeof(__u64)) & 0x7f;

  struct gpusonde_process *process = bpf_map_lookup_elem(&processes, &pid);
  const bool kernel_thread = bpf_get_current_task_btf()->mm == NULL;
  if (kernel_thread) {
    /* A kernel thread has no user frames. */
  } else if (!process) {
    const struct gpusonde_process unregistered = {};
    if (!wake) {
      /* Left to programs that can wake user space. */
    } else if (bpf_map_update_elem(&processes, &pid, &unregistered, BPF_NOEXIST)) {
      count_stack(GPUSONDE_PROCESSES_FULL);
    } else {
      *wake = true;
    }
    take_frames_by_pointer(context, stack);
  } else {
    if (process->unwind.count)
      take_native_frames(process, &walk->native, stack, wake);
    else
      take_frames_by_pointer(context, stack);
  }
  if (process && process->python.runtime)
    take_python_frames(process, pid, &walk->python, stack, wake);
  else
    stack->counts.python_end = GPUSONDE_PYTHON_UNKNOWN;
  if (stack->counts.native_end == GPUSONDE_NATIVE_TRUNCATED ||
      stack->counts.python_end == GPUSONDE_PYTHON_TRUNCATED)
    count_stack(GPUSONDE_STACK_TRUNCATED);
  return offsetof(struct gpusonde_stack, words) +
         (stack->counts.kernel_frames + stack->counts.user_frames + 2 * stack->counts.python_frames) *
             sizeof(__u64);
}
