// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sources/ebpf/testing/user_mode_unwinder.h"

#include <stddef.h>
#include <string.h>

struct unwind_walk;
int unwind_step(struct unwind_walk* walk); /* they have no other declaration */
int unwind_steps(struct unwind_walk* walk, struct gpusonde_stack* stack);

#define __noinline __attribute__((noinline))
#ifndef __always_inline /* glibc has it */
#define __always_inline inline __attribute__((always_inline))
#endif

static const struct user_mode_image* current;

static bool unwind_read(__u64 address, __u64* value) {
  return current->read(current->memory, address, value);
}
static bool unwind_read_words(__u64 address, __u64* values, __u32 count) {
  for (__u32 i = 0; i < count; ++i)
    if (!unwind_read(address + i * sizeof *values, &values[i])) return false;
  return true;
}
static const struct gpusonde_unwind_mapping* unwind_mapping(__u32 index) {
  return index < current->mapping_count ? &current->mappings[index] : NULL;
}
static const __u32* unwind_shard(__u32 index) {
  return index < current->shard_count ? current->shards[index] : NULL;
}
static const struct gpusonde_unwind_rule* unwind_rule(__u32 index) {
  return index < current->rule_count ? &current->rules[index] : NULL;
}

static __u64 unwind_thread_pointer(void) { return current->thread_pointer; }

#include "sources/ebpf/bpf/unwind.h"

__u32 user_mode_unwind(const struct user_mode_image* image, __u64 pc,
                       const __u64 registers[GPUSONDE_UNWIND_REGISTERS], struct gpusonde_stack* stack,
                       int* end) {
  current = image;
  struct unwind_walk walk = {.process = {.first = 0, .count = image->mapping_count, .id = image->id},
                             .pc = pc,
                             .exact = 1,
                             .first = 1};
  memcpy(walk.registers, registers, sizeof walk.registers);
  return unwind_frames(&walk, stack, 0, end);
}
