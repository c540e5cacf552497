/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the CPython frames of the current thread: code objects and instructions, which user space symbolizes.
 * All of it is untrusted memory of the process: every read and loop is bounded. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

#include <stdbool.h>

#include "wire/stack.h"

/* Where glibc keeps a thread's first 32 values of pthread_setspecific, from the thread pointer on: struct
 * pthread's specific_1stblock, {sequence number, value} each. Source: nptl/descr.h, and the code of
 * pthread_getspecific. */
#define GLIBC_SPECIFIC 0x310
#define GLIBC_SPECIFIC_VALUES 32

/* Code objects for which user space was woken: it reads their names before they are freed. */
struct python_code_key {
  __u32 pid, check;
  __u64 code;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct python_code_key);
  __type(value, __u8);
} python_codes_seen SEC(".maps");

/* The walk over one thread's frames. The masks in the accessors prove to the verifier that offsets are in
 * bounds. */
struct python_walk {
  __u64 address; /* of the next frame; 0 at the end */
  __u32 pid;
  __u32 taken;        /* frames added to the stack */
  __u32 between_runs; /* the previous frame was an entry frame, or there was none */
  __u32 met_new_code;
  __u64 frame[GPUSONDE_PYTHON_FRAME_BYTES / 8 + 1];
};
#define FRAME_WORD(walk, offset) ((walk)->frame[((offset) / 8) & 15])
#define FRAME_BYTE(walk, offset) (((const __u8 *)(walk)->frame)[(offset) & 0x7f])

static __always_inline __u64 read_pointer(__u64 address) {
  __u64 value = 0;
  return bpf_probe_read_user(&value, sizeof value, (void *)address) ? 0 : value;
}

/* The current thread's PyThreadState, 0 if it has none. Before 3.12 the TSS key has a thread's first state
 * only; the state of a subinterpreter is found in gilstate.tstate_current while the thread holds the GIL. */
static __always_inline __u64 python_thread(const struct gpusonde_python *python) {
  const struct gpusonde_python_layout *layout = &python->layout;
  const __u64 self = bpf_get_current_task_btf()->thread.fsbase;
  if (layout->running_thread) {
    const __u64 running = read_pointer(python->runtime + layout->running_thread);
    if (running && read_pointer(running + layout->thread_id) == self) return running;
  }
  struct {
    __u32 is_initialized, key;
  } tss; /* Py_tss_t, Include/pythread.h */
  if (bpf_probe_read_user(&tss, sizeof tss, (void *)(python->runtime + layout->tss_key))) return 0;
  if (!tss.is_initialized || tss.key >= GLIBC_SPECIFIC_VALUES) return 0;
  return read_pointer(self + GLIBC_SPECIFIC + tss.key * 16 + 8);
}

/* Its innermost frame, 0 if there is none. */
static __always_inline __u64 python_innermost(const struct gpusonde_python_layout *layout, __u64 thread) {
  const __u64 frame = read_pointer(thread + layout->thread_frame);
  return frame && layout->indirect ? read_pointer(frame + layout->frame_pointer) : frame;
}

/* Fills in the output frame from the walk's current frame, without GPUSONDE_PYTHON_IS_ENTRY. */
static __always_inline bool read_python_code(const struct gpusonde_python_layout *layout,
                                             const struct python_walk *walk,
                                             struct gpusonde_python_frame *frame) {
  __u32 first_line = 0;
  __u64 name = 0, file = 0;
  frame->code = FRAME_WORD(walk, layout->frame_code);
  if (bpf_probe_read_user(&first_line, sizeof first_line, (void *)(frame->code + layout->code_first_line)) ||
      bpf_probe_read_user(&name, sizeof name, (void *)(frame->code + layout->code_name)) ||
      bpf_probe_read_user(&file, sizeof file, (void *)(frame->code + layout->code_file)))
    return false;
  frame->check = gpusonde_python_check(name, file, first_line);

  const __u64 at = FRAME_WORD(walk, layout->frame_instruction);
  const __s64 offset = layout->code_bytecode ? (__s64)(at - frame->code - layout->code_bytecode)
                                             : (__s64)(__s32)at << (layout->instruction_shift & 7);
  /* Below 0 before the first instruction. */
  frame->instruction = offset < 0 ? 0 : (__u32)offset & GPUSONDE_PYTHON_INSTRUCTION;
  return true;
}

static __always_inline void note_python_code(struct python_walk *walk,
                                             const struct gpusonde_python_frame *frame) {
  const struct python_code_key key = {.pid = walk->pid, .check = frame->check, .code = frame->code};
  if (!frame->code || bpf_map_lookup_elem(&python_codes_seen, &key)) return;
  const __u8 one = 1;
  if (bpf_map_update_elem(&python_codes_seen, &key, &one, BPF_ANY) == 0) walk->met_new_code = true;
}

/* Processes one frame. Returns PYTHON_GOES_ON, or why the walk ended, an enum gpusonde_python_end. A global
 * function, so that it is verified once instead of once per frame. */
#define PYTHON_GOES_ON (-1)
__noinline int python_step(struct python_walk *walk, struct gpusonde_stack *stack,
                           const struct gpusonde_process *process) {
  if (!walk || !stack || !process) return GPUSONDE_PYTHON_UNREADABLE;
  const struct gpusonde_python_layout *layout = &process->python.layout;
  if (!walk->address) return GPUSONDE_PYTHON_COMPLETE;
  if (walk->taken >= GPUSONDE_MAX_FRAMES) return GPUSONDE_PYTHON_TRUNCATED;
  if (bpf_probe_read_user(walk->frame, layout->frame_bytes & 0x7f, (void *)walk->address))
    return GPUSONDE_PYTHON_UNREADABLE;
  walk->address = FRAME_WORD(walk, layout->frame_previous);

  const __u8 marker = FRAME_BYTE(walk, layout->frame_entry);
  const bool shim = layout->entry == GPUSONDE_ENTRY_BY_SHIM && marker == GPUSONDE_PYTHON_ON_C_STACK;
  const __u32 place = stack->counts.kernel_frames + stack->counts.user_frames + 2 * walk->taken;
  if (shim && !walk->between_runs) { /* the previous frame was called from here */
    stack->words[(place - 1) & (GPUSONDE_STACK_WORDS - 1)] |= GPUSONDE_PYTHON_IS_ENTRY;
    walk->between_runs = true;
    return PYTHON_GOES_ON;
  }
  struct gpusonde_python_frame frame = {};
  if (!shim && !read_python_code(layout, walk, &frame)) return GPUSONDE_PYTHON_UNREADABLE;
  walk->between_runs =
      shim || layout->entry == GPUSONDE_ENTRY_EVERY || (layout->entry == GPUSONDE_ENTRY_FLAG && marker);
  if (walk->between_runs) frame.instruction |= GPUSONDE_PYTHON_IS_ENTRY;
  note_python_code(walk, &frame);
  stack->words[place & (GPUSONDE_STACK_WORDS - 1)] = frame.code;
  stack->words[(place + 1) & (GPUSONDE_STACK_WORDS - 1)] = frame.instruction | (__u64)frame.check << 32;
  ++walk->taken;
  return PYTHON_GOES_ON;
}

/* Processes up to this many frames: as unwind_steps, so that the verifier follows fewer iterations. */
#define PYTHON_STEPS 16
__noinline int python_steps(struct python_walk *walk, struct gpusonde_stack *stack,
                            const struct gpusonde_process *process) {
  if (!walk || !stack || !process) return GPUSONDE_PYTHON_UNREADABLE;
  int end = PYTHON_GOES_ON;
  for (int step = 0; step < PYTHON_STEPS && end == PYTHON_GOES_ON; ++step)
    end = python_step(walk, stack, process);
  return end;
}

/* Appends the current thread's Python frames to the stack, after all kernel and user frames. */
static __always_inline void take_python_frames(const struct gpusonde_process *process, __u32 pid,
                                               struct python_walk *walk, struct gpusonde_stack *stack,
                                               bool *wake) {
  walk->met_new_code = false;
  const __u64 thread = python_thread(&process->python);
  if (!thread) return;
  walk->address = python_innermost(&process->python.layout, thread);
  walk->pid = pid;
  walk->taken = 0;
  walk->between_runs = true;
  int end = PYTHON_GOES_ON;
  /* A shim takes a step but adds no frame. */
  for (int steps = 0; steps < 2 * GPUSONDE_MAX_FRAMES && end == PYTHON_GOES_ON; steps += PYTHON_STEPS)
    end = python_steps(walk, stack, process);
  stack->counts.python_frames = walk->taken;
  stack->counts.python_end = end == PYTHON_GOES_ON ? GPUSONDE_PYTHON_TRUNCATED : end;
  if (wake && walk->met_new_code) *wake = true;
}
