/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes the stack of the current thread, the same way at whatever event: a clock, a uprobe. Include it once
 * in a program. `processes` is filled by user space (sources/ebpf/stack_tables.h), one map for all programs;
 * the others are each program's own, because a clock may interrupt a uprobe's program on the same CPU. */
#pragma once

#include "kernel.h"

#include "python.h"
#include "wire/stack.h"

/* By thread group. A program that meets a stranger enters it empty and wakes user space, which fills it in.
 */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct gpusonde_process);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, GPUSONDE_STACK_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} stack_counters SEC(".maps");

/* Too large for the stack. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct python_walk);
} python_walks SEC(".maps");

static __always_inline void count_stack(__u32 counter) {
  __u64 *value = bpf_map_lookup_elem(&stack_counters, &counter);
  if (value) ++*value; /* per CPU, and no program is re-entered on one */
}

/* Fills in `stack`, of thread group `pid`, which must be the current one. Returns the bytes of it that are
 * used. Sets `wake` if user space should look at once, to learn what will soon be gone. */
static __always_inline __u64 take_stack(void *context, __u32 pid, bool with_kernel,
                                        struct gpusonde_stack *stack, bool *wake) {
  const __u32 room = GPUSONDE_MAX_FRAMES * sizeof(__u64);
  long bytes = with_kernel ? bpf_get_stack(context, stack->words, room, 0) : 0;
  if (bytes < 0) bytes = 0;
  if (bytes == room) count_stack(GPUSONDE_STACK_TRUNCATED);
  /* The masks are no-ops that tell the verifier the bounds. */
  stack->counts.kernel_frames = ((__u32)bytes / sizeof(__u64)) & 0x7f;

  const __u32 kernel_frames = stack->counts.kernel_frames & 0x7f;
  bytes = bpf_get_stack(context, &stack->words[kernel_frames], room, BPF_F_USER_STACK);
  if (bytes < 0) {
    bytes = 0;
    /* A kernel thread has none and lacks nothing; what was running in user mode, or came from there, does. */
    if (kernel_frames == 0) count_stack(GPUSONDE_NO_USER_STACK);
  }
  if (bytes == room) count_stack(GPUSONDE_STACK_TRUNCATED);
  stack->counts.user_frames = ((__u32)bytes / sizeof(__u64)) & 0x7f;
  stack->counts.python_frames = 0;
  stack->counts.python_end = GPUSONDE_PYTHON_COMPLETE;
  stack->counts.unused = 0;

  const __u32 zero = 0;
  struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &zero);
  const struct gpusonde_process *process = bpf_map_lookup_elem(&processes, &pid);
  if (!process) {
    const struct gpusonde_process stranger = {};
    if (bpf_map_update_elem(&processes, &pid, &stranger, BPF_NOEXIST))
      count_stack(GPUSONDE_PROCESSES_FULL);
    else
      *wake = true;
  } else if (process->python.runtime && walk) {
    take_python_frames(process, pid, walk, stack);
    if (stack->counts.python_end == GPUSONDE_PYTHON_TRUNCATED) count_stack(GPUSONDE_STACK_TRUNCATED);
    if (stack->counts.python_end == GPUSONDE_PYTHON_UNREADABLE) count_stack(GPUSONDE_PYTHON_STACK_LOST);
    if (walk->met_new_code) *wake = true;
  }
  return __builtin_offsetof(struct gpusonde_stack, words) +
         (stack->counts.kernel_frames + stack->counts.user_frames + 2 * stack->counts.python_frames) *
             sizeof(__u64);
}
