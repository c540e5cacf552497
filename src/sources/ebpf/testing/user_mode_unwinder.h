/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF unwinder (bpf/unwind.h) compiled for user mode, to run over images of processes. Plain C. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "wire/stack.h"
#include "wire/unwind.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The contents of the BPF maps, and a process's memory. */
struct user_mode_image {
  bool (*read)(void* memory, __u64 address, __u64* value);
  void* memory;
  const struct gpusonde_unwind_mapping* mappings; /* by address */
  __u32 mapping_count;
  __u64 id; /* of these mappings; not 0 */
  const __u32* const* shards;
  __u32 shard_count;
  const struct gpusonde_unwind_rule* rules;
  __u32 rule_count;
  __u64 thread_pointer; /* of the thread: its base of fs */
};

/* Unwinds a thread stopped at `pc` with these registers (by DWARF's numbers) into stack->words, leaf first.
 * Returns the number of frames; *end is an enum gpusonde_native_end. Not thread-safe. */
__u32 user_mode_unwind(const struct user_mode_image* image, __u64 pc,
                       const __u64 registers[GPUSONDE_UNWIND_REGISTERS], struct gpusonde_stack* stack,
                       int* end);

#ifdef __cplusplus
}
#endif
