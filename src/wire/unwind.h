/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* The tables by which kernel programs unwind native stacks without frame pointers: call frame information
 * (DWARF 5, section 6.4; .eh_frame in the Linux Standard Base) compiled by unwind/ into rows that a binary
 * search finds.
 *
 * A table covers one file. It is made of words of 32 bits, which lie in shards of 65,536 words: a directory
 * with two words for each 64 KiB of the file's addresses, {word index of the first row, number of rows}, and
 * the rows of each, all in one shard. A row is (rule << 16 | low 16 bits of the address) and holds up to the
 * next one; the first of a page is at its begin. */
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define GPUSONDE_UNWIND_SHARD_WORDS 65536
#define GPUSONDE_UNWIND_SHARDS 192 /* 48 MiB when all are in use; they are made one by one */
#define GPUSONDE_UNWIND_RULES 32768
#define GPUSONDE_UNWIND_MAPPINGS 65536 /* of all processes together */
/* A library of 2 GiB; its directory fills a shard. */
#define GPUSONDE_UNWIND_MAX_PAGES (GPUSONDE_UNWIND_SHARD_WORDS / 2)
#define GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS 4096

/* How to find the canonical frame address, the caller's rsp. */
enum gpusonde_cfa_kind {
  GPUSONDE_CFA_NONE,        /* the table says nothing about this address */
  GPUSONDE_CFA_END,         /* there is no caller: the thread began here */
  GPUSONDE_CFA_UNSUPPORTED, /* the table says it in a way that we can't follow */
  GPUSONDE_CFA_REGISTER,    /* register + offset */
  GPUSONDE_CFA_DEREFERENCE, /* *(register + offset) + add */
  GPUSONDE_CFA_GO,          /* none: a Go function left the stack for another; enum gpusonde_go_switch */
  GPUSONDE_CFA_PLT, /* rsp + offset + ((rip & 15) >= add ? 8 : 0): entries of a procedure linkage table */
};

/* Where the Go runtime noted the stack pointer that a function left its stack with: with GPUSONDE_CFA_GO, in
 * `cfa_register`. A thread runs a g, found at the thread pointer + cfa_offset; that has its m at rbp_offset;
 * and that its own g0 in front, and the goroutine it runs at cfa_add. In one of them a stack pointer is at
 * ra_offset, and an address behind it. */
enum gpusonde_go_switch {
  GPUSONDE_GO_CALLER,    /* the goroutine's, where the address of the caller is on the stack */
  GPUSONDE_GO_GOROUTINE, /* the goroutine's, of the caller; the thread's own when it has left that meanwhile
                          */
  GPUSONDE_GO_THREAD,    /* the g0's, of the caller */
  GPUSONDE_GO_CLOCK,     /* the m's, of the caller */
};

/* Where the caller's value of a register is. */
enum gpusonde_saved_kind {
  GPUSONDE_SAVED_NOT,    /* still in the register */
  GPUSONDE_SAVED_AT_CFA, /* at the canonical frame address + offset */
  GPUSONDE_SAVED_AT_RSP, /* at rsp + offset: a signal frame when it is the return address */
  GPUSONDE_SAVED_AT_RBP, /* at rbp + offset */
};

/* DWARF's numbers of registers on x86-64 (psABI, figure 3.36). */
#define GPUSONDE_DWARF_RBP 6
#define GPUSONDE_DWARF_RSP 7
#define GPUSONDE_DWARF_RA 16
#define GPUSONDE_UNWIND_REGISTERS 16

struct gpusonde_unwind_rule {
  __u8 cfa;          /* enum gpusonde_cfa_kind */
  __u8 cfa_register; /* below GPUSONDE_UNWIND_REGISTERS */
  __u8 rbp;          /* enum gpusonde_saved_kind */
  __u8 ra;           /* enum gpusonde_saved_kind, never NOT */
  __s32 cfa_offset;
  __s32 cfa_add;
  __s32 rbp_offset;
  __s32 ra_offset;
};

/* One executable mapping of a process. Those of one process are neighbours, by address. */
struct gpusonde_unwind_mapping {
  __u64 start;
  __u64 end;
  __u64 bias;      /* address − bias is what the table's pages count from */
  __u32 directory; /* word index of the table's directory */
  __u32 pages;     /* of the directory; 0 when there is no table: frame pointers are all there is */
};

/* Where in the map `unwind_mappings` those of a process are; count 0: not described. */
struct gpusonde_unwind_process {
  __u32 first;
  __u32 count;
};

/* Where a stack's native frames ended. */
enum gpusonde_native_end {
  GPUSONDE_NATIVE_COMPLETE,       /* at the thread's start; also when it has none */
  GPUSONDE_NATIVE_TRUNCATED,      /* deeper than GPUSONDE_MAX_FRAMES */
  GPUSONDE_NATIVE_FRAME_POINTERS, /* nobody knows: followed by frame pointers, tables weren't there yet */
  GPUSONDE_NATIVE_NO_MAPPING,     /* at an address outside all code */
  GPUSONDE_NATIVE_NO_RULE,        /* in code that no table covers and that keeps no frame pointer */
  GPUSONDE_NATIVE_UNSUPPORTED,    /* at a rule that we can't follow */
  GPUSONDE_NATIVE_UNREADABLE,     /* at stack memory that could not be read */
  GPUSONDE_NATIVE_ENDS,
};
