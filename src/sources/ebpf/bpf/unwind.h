/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwinds a native stack with the tables of wire/unwind.h. Compiled for the kernel by stack.h, and for user
 * mode by the tests of sources/ebpf, which run the same code over images of processes; each defines, before
 * including this,
 *
 *   bool unwind_read(u64 address, u64 *value)                     a word of the process's memory
 *   bool unwind_read_words(u64 address, u64 *values, u32 count)   several; false if one of them can't be read
 *   const struct gpusonde_unwind_mapping *unwind_mapping(u32 i)   an entry of `unwind_mappings`, or null
 *   const u32 *unwind_shard(u32 i)                                a shard's words, or null
 *   const struct gpusonde_unwind_rule *unwind_rule(u32 i)         a rule, or null
 *   u64 unwind_thread_pointer()                                   of the thread walked: its base of fs
 *
 * Nothing read is trusted: tables are compiled from untrusted files, stacks are untrusted memory. */
#pragma once

#include "wire/stack.h"
#include "wire/unwind.h"

/* Words of the stack that are read at once: a frame's saved registers are mostly within those of the frame
 * before, and a read costs 50 ns and more however short it is. */
#define UNWIND_WORDS 64

struct unwind_walk {
  struct gpusonde_unwind_process process;
  __u64 pc;
  __u64 registers[GPUSONDE_UNWIND_REGISTERS]; /* by DWARF's numbers; only rbp and rsp after the first frame */
  __u32 exact;                                /* pc is the current instruction, not a return address */
  __u32 first;                                /* the first frame: all registers are known */
  __u32 place;                                /* of the first frame in the stack's words */
  __u32 taken;                                /* frames written */
  __u32 mapping;  /* the last that was found: callers often are in the same file */
  __u64 words_at; /* where `words` are from; 0: nowhere */
  __u64 words[UNWIND_WORDS];
};

#define UNWIND_GOES_ON (-1)

/* The mapping that contains an address: the last that begins at or before it. */
static __always_inline const struct gpusonde_unwind_mapping *find_unwind_mapping(struct unwind_walk *walk,
                                                                                 __u64 address) {
  __u32 low = walk->process.first, count = walk->process.count;
  if (walk->mapping - low < count) {
    const struct gpusonde_unwind_mapping *last = unwind_mapping(walk->mapping);
    if (last && last->start <= address && address < last->end) return last;
  }
  /* 2^12 = GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS */
  for (int step = 0; step < 13 && count > 1; ++step) {
    const __u32 half = count / 2;
    const struct gpusonde_unwind_mapping *middle = unwind_mapping(low + half);
    if (!middle) return NULL;
    if (middle->start <= address) low += half;
    count -= half;
  }
  const struct gpusonde_unwind_mapping *found = count ? unwind_mapping(low) : NULL;
  if (!found || address < found->start || found->end <= address) return NULL;
  walk->mapping = low;
  return found;
}

/* The number of the rule for an address, 0 (GPUSONDE_CFA_NONE) if there is none. */
static __always_inline __u32 find_unwind_rule(const struct gpusonde_unwind_mapping *mapping, __u64 address) {
  const __u64 offset = address - mapping->bias;
  const __u64 page = offset >> 16;
  if (page >= mapping->pages) return 0;
  const __u32 entry = mapping->directory + 2 * (__u32)page;
  const __u32 *words = unwind_shard(entry / GPUSONDE_UNWIND_SHARD_WORDS);
  if (!words) return 0;
  const __u32 first = words[entry & (GPUSONDE_UNWIND_SHARD_WORDS - 1)];
  __u32 count = words[(entry + 1) & (GPUSONDE_UNWIND_SHARD_WORDS - 1)];
  words = unwind_shard(first / GPUSONDE_UNWIND_SHARD_WORDS);
  if (!words) return 0;

  __u32 low = first;
  for (int step = 0; step < 17 && count > 1; ++step) {
    const __u32 half = count / 2;
    const __u32 row = words[(low + half) & (GPUSONDE_UNWIND_SHARD_WORDS - 1)];
    if ((row & 0xffff) <= (offset & 0xffff)) low += half;
    count -= half;
  }
  return count ? words[low & (GPUSONDE_UNWIND_SHARD_WORDS - 1)] >> 16 : 0;
}

/* The rules of addresses that were met before: most stacks are of the same functions, and finding a rule
 * takes two binary searches. All CPUs share the entries, and a run may be preempted while it writes one:
 * `check` is `rule_and_address` XOR the id of the process's mappings, so that halves of two entries don't
 * match (R. Hyatt and T. Mann, A lock-less transposition-table implementation for parallel search, ICGA
 * Journal 25, 2002). */
#define KNOWN_RULES_BITS 12
static struct known_rule {
  __u64 rule_and_address; /* 16 and 48 bits */
  __u64 check;
} known_rules[1 << KNOWN_RULES_BITS];

#define ADDRESS_BITS 48 /* longer ones, with five levels of page tables, are not remembered */

/* The number of the rule for an address as by find_unwind_rule; NO_UNWIND_MAPPING if it is outside all. */
#define NO_UNWIND_MAPPING (-1)
static __always_inline __s32 unwind_rule_of(struct unwind_walk *walk, __u64 address) {
  const __u64 id = walk->process.id;
  const __u64 hash = (address + (id << 32)) * 0x9E3779B97F4A7C15ull;
  struct known_rule *known = &known_rules[hash >> (64 - KNOWN_RULES_BITS)];
  const __u64 met = *(volatile __u64 *)&known->rule_and_address;
  const __u64 check = *(volatile __u64 *)&known->check;
  if ((met ^ check) == id && (met & ((1ull << ADDRESS_BITS) - 1)) == address)
    return (__s32)(met >> ADDRESS_BITS);
  const struct gpusonde_unwind_mapping *mapping = find_unwind_mapping(walk, address);
  if (!mapping) return NO_UNWIND_MAPPING;
  const __u32 rule = find_unwind_rule(mapping, address);
  if (!(address >> ADDRESS_BITS)) {
    const __u64 entry = (__u64)rule << ADDRESS_BITS | address;
    *(volatile __u64 *)&known->rule_and_address = entry;
    *(volatile __u64 *)&known->check = entry ^ id;
  }
  return (__s32)rule;
}

/* A word of the stack. */
static __always_inline bool unwind_stack_word(struct unwind_walk *walk, __u64 address, __u64 *value) {
  if (address - walk->words_at >= sizeof walk->words) {
    /* From the top of the stack on, below which nothing is saved, or else with room for what lies below. */
    const __u64 top = walk->registers[GPUSONDE_DWARF_RSP];
    const __u64 from = address - top < sizeof walk->words ? top : address - sizeof walk->words / 4;
    walk->words_at = unwind_read_words(from, walk->words, UNWIND_WORDS) ? from : 0;
  }
  const __u64 offset = address - walk->words_at;
  if (!walk->words_at || offset % sizeof(__u64)) return unwind_read(address, value);
  *value = walk->words[offset / sizeof(__u64) % UNWIND_WORDS];
  return true;
}

/* Steps one frame by frame pointer: for JIT code, and files without tables. */
static __always_inline int step_by_frame_pointer(struct unwind_walk *walk, int otherwise) {
  const __u64 frame = walk->registers[GPUSONDE_DWARF_RBP];
  __u64 caller_frame, return_address;
  if (frame < walk->registers[GPUSONDE_DWARF_RSP] || frame % sizeof(__u64)) return otherwise;
  if (!unwind_stack_word(walk, frame, &caller_frame) || !unwind_stack_word(walk, frame + 8, &return_address))
    return GPUSONDE_NATIVE_UNREADABLE;
  if (!find_unwind_mapping(walk, return_address - 1)) return otherwise;
  walk->pc = return_address;
  walk->registers[GPUSONDE_DWARF_RBP] = caller_frame;
  walk->registers[GPUSONDE_DWARF_RSP] = frame + 16;
  walk->exact = 0;
  walk->first = 0;
  return UNWIND_GOES_ON;
}

static __always_inline __u64 at_offset(__u64 address, __s32 offset) { return address + (__u64)(__s64)offset; }

static __always_inline bool unwind_saved(__u8 kind, __s32 offset, struct unwind_walk *walk, __u64 cfa,
                                         __u64 *value) {
  switch (kind) {
    case GPUSONDE_SAVED_AT_CFA:
      return unwind_stack_word(walk, at_offset(cfa, offset), value);
    case GPUSONDE_SAVED_AT_RSP:
      return unwind_stack_word(walk, at_offset(walk->registers[GPUSONDE_DWARF_RSP], offset), value);
    case GPUSONDE_SAVED_AT_RBP:
      return unwind_stack_word(walk, at_offset(walk->registers[GPUSONDE_DWARF_RBP], offset), value);
    default:
      return true;
  }
}

/* Steps from a stack of the Go runtime to the stack from which it switched. The new pc is a return address.
 */
static __always_inline int step_to_left_stack(struct unwind_walk *walk,
                                              const struct gpusonde_unwind_rule *rule) {
  __u64 g, owner, pointer, pc;
  if (!unwind_read(at_offset(unwind_thread_pointer(), rule->cfa_offset), &g) ||
      !unwind_read(at_offset(g, rule->rbp_offset), &owner))
    return GPUSONDE_NATIVE_UNREADABLE;
  if (rule->cfa_register != GPUSONDE_GO_CLOCK) {
    const __u64 m = owner;
    const bool of_goroutine = rule->cfa_register != GPUSONDE_GO_THREAD;
    if (!unwind_read(of_goroutine ? at_offset(m, rule->cfa_add) : m, &owner))
      return GPUSONDE_NATIVE_UNREADABLE;
    if (!owner && rule->cfa_register == GPUSONDE_GO_GOROUTINE && !unwind_read(m, &owner))
      return GPUSONDE_NATIVE_UNREADABLE;
  }
  if (!unwind_read(at_offset(owner, rule->ra_offset), &pointer) ||
      !unwind_read(at_offset(owner, rule->ra_offset) + 8, &pc))
    return GPUSONDE_NATIVE_UNREADABLE;
  if (rule->cfa_register == GPUSONDE_GO_CALLER) {
    if (!unwind_read(pointer, &pc)) return GPUSONDE_NATIVE_UNREADABLE;
    pointer += 8;
  }
  walk->pc = pc;
  walk->registers[GPUSONDE_DWARF_RSP] = pointer;
  walk->exact = 0;
  walk->first = 0;
  return UNWIND_GOES_ON;
}

/* Steps from a frame to its caller. Returns UNWIND_GOES_ON, or why the stack ends here: enum
 * gpusonde_native_end. A global function, so that it is verified once instead of once per frame. */
__noinline int unwind_step(struct unwind_walk *walk) {
  if (!walk) return GPUSONDE_NATIVE_UNREADABLE;
  const __u64 address = walk->exact ? walk->pc : walk->pc - 1;
  const __s32 rule_number = unwind_rule_of(walk, address);
  if (rule_number == NO_UNWIND_MAPPING) return GPUSONDE_NATIVE_NO_MAPPING;
  const struct gpusonde_unwind_rule *rule = unwind_rule((__u32)rule_number);
  if (!rule || rule->cfa == GPUSONDE_CFA_NONE) return step_by_frame_pointer(walk, GPUSONDE_NATIVE_NO_RULE);
  if (rule->cfa == GPUSONDE_CFA_END) return GPUSONDE_NATIVE_COMPLETE;
  if (rule->cfa == GPUSONDE_CFA_GO) return step_to_left_stack(walk, rule);

  const __u32 number = rule->cfa_register & (GPUSONDE_UNWIND_REGISTERS - 1);
  const bool known = walk->first || number == GPUSONDE_DWARF_RSP || number == GPUSONDE_DWARF_RBP;
  if (rule->cfa == GPUSONDE_CFA_UNSUPPORTED || !known) return GPUSONDE_NATIVE_UNSUPPORTED;
  __u64 cfa = at_offset(walk->registers[number], rule->cfa_offset);
  if (rule->cfa == GPUSONDE_CFA_DEREFERENCE) {
    if (!unwind_read(cfa, &cfa)) return GPUSONDE_NATIVE_UNREADABLE;
    cfa = at_offset(cfa, rule->cfa_add);
  } else if (rule->cfa == GPUSONDE_CFA_PLT && (walk->pc & 15) >= (__u32)rule->cfa_add) {
    cfa += 8;
  }

  __u64 return_address = 0, rbp = walk->registers[GPUSONDE_DWARF_RBP];
  if (!unwind_saved(rule->ra, rule->ra_offset, walk, cfa, &return_address) ||
      !unwind_saved(rule->rbp, rule->rbp_offset, walk, cfa, &rbp))
    return GPUSONDE_NATIVE_UNREADABLE;
  if (!return_address)
    return GPUSONDE_NATIVE_COMPLETE; /* the return address of many threads' outermost frame */
  walk->pc = return_address;
  walk->registers[GPUSONDE_DWARF_RBP] = rbp;
  walk->registers[GPUSONDE_DWARF_RSP] = cfa;
  walk->exact = rule->ra == GPUSONDE_SAVED_AT_RSP;
  walk->first = 0;
  return UNWIND_GOES_ON;
}

/* Writes up to this many frames. Returns UNWIND_GOES_ON, or why the walk ended. A global function, as
 * unwind_step is: the verifier follows 16 iterations here and 8 in unwind_frames instead of 127, each of
 * several paths. */
#define UNWIND_STEPS 16
__noinline int unwind_steps(struct unwind_walk *walk, struct gpusonde_stack *stack) {
  if (!walk || !stack) return GPUSONDE_NATIVE_UNREADABLE;
  int end = UNWIND_GOES_ON;
  for (int step = 0; step < UNWIND_STEPS && end == UNWIND_GOES_ON; ++step) {
    if (walk->taken >= GPUSONDE_MAX_FRAMES) return GPUSONDE_NATIVE_TRUNCATED;
    stack->words[(walk->place + walk->taken) & (GPUSONDE_STACK_WORDS - 1)] =
        walk->pc + (walk->taken ? walk->exact : 0);
    ++walk->taken;
    end = unwind_step(walk);
  }
  return end;
}

/* Writes the frames of a walk, from its current one on, to words[place…], leaf first. A caller is written as
 * its return address, and a frame that a signal interrupted as its pc + 1, so that for all but the leaf the
 * address - 1 is in the current instruction. Returns the number of frames; `end` is why the walk ended. */
static __always_inline __u32 unwind_frames(struct unwind_walk *walk, struct gpusonde_stack *stack,
                                           __u32 place, int *end) {
  walk->place = place;
  walk->taken = 0;
  walk->words_at = 0;
  *end = UNWIND_GOES_ON;
  for (int steps = 0; steps <= GPUSONDE_MAX_FRAMES && *end == UNWIND_GOES_ON; steps += UNWIND_STEPS)
    *end = unwind_steps(walk, stack);
  return walk->taken;
}
