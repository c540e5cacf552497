/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* The tables with which BPF programs unwind native stacks without frame pointers: call frame information
 * (DWARF 5, section 6.4; .eh_frame in the Linux Standard Base) compiled by unwind/ into rows that a binary
 * search finds.
 *
 * A table covers one file. It consists of 32-bit words stored in shards of 65,536 words: a directory with two
 * words for each 64 KiB page of the file's addresses, {word index of the first row, number of rows}, and the
 * rows of each page, all in one shard. A row is (rule << 16 | low 16 bits of the address) and applies up to
 * the next row; a page's first row is at the page's start. */
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define GPUSONDE_UNWIND_SHARD_WORDS 65536
#define GPUSONDE_UNWIND_SHARDS 192 /* 48 MiB when all are in use; allocated one by one */
#define GPUSONDE_UNWIND_RULES 32768
#define GPUSONDE_UNWIND_MAPPINGS 65536 /* of all processes together */
/* A library of 2 GiB; its directory fills a shard. */
#define GPUSONDE_UNWIND_MAX_PAGES (GPUSONDE_UNWIND_SHARD_WORDS / 2)
#define GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS 4096

/* How to compute the canonical frame address (CFA), the caller's rsp. */
enum gpusonde_cfa_kind {
  GPUSONDE_CFA_NONE,        /* the table doesn't cover this address */
  GPUSONDE_CFA_END,         /* no caller: the thread's outermost frame */
  GPUSONDE_CFA_UNSUPPORTED, /* the rule is of a form that we don't support */
  GPUSONDE_CFA_REGISTER,    /* register + offset */
  GPUSONDE_CFA_DEREFERENCE, /* *(register + offset) + add */
  GPUSONDE_CFA_GO,          /* a Go function switched stacks; enum gpusonde_go_switch */
  GPUSONDE_CFA_PLT, /* rsp + offset + ((rip & 15) >= add ? 8 : 0): entries of a procedure linkage table */
};

/* Where the Go runtime saves the stack pointer when a function switches stacks; for GPUSONDE_CFA_GO, in
 * `cfa_register`. The thread's current g is at the thread pointer + cfa_offset; the g has its m at
 * rbp_offset; the m has its g0 at offset 0 and the goroutine that it runs at cfa_add. In one of these the
 * stack pointer is saved at ra_offset, followed by the instruction address. */
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

/* One executable mapping of a process. The mappings of a process are contiguous, sorted by address. */
struct gpusonde_unwind_mapping {
  __u64 start;
  __u64 end;
  __u64 bias;      /* address − bias is the address in the table */
  __u32 directory; /* word index of the table's directory */
  __u32 pages;     /* of the directory; 0: there is no table, follow frame pointers */
};

/* The range of a process's mappings in the map `unwind_mappings`; count 0: not registered. */
struct gpusonde_unwind_process {
  __u32 first;
  __u32 count;
  __u64 id; /* of this range with these mappings; not reused, so that rules can be remembered by it */
};

/* Where a stack's native frames ended. */
enum gpusonde_native_end {
  GPUSONDE_NATIVE_COMPLETE,       /* at the thread's outermost frame; also when it has none */
  GPUSONDE_NATIVE_TRUNCATED,      /* deeper than GPUSONDE_MAX_FRAMES */
  GPUSONDE_NATIVE_FRAME_POINTERS, /* not known: unwound by frame pointers, as the tables weren't loaded yet */
  GPUSONDE_NATIVE_NO_MAPPING,     /* at an address outside all code */
  GPUSONDE_NATIVE_NO_RULE,        /* in code without a table and without a frame pointer */
  GPUSONDE_NATIVE_UNSUPPORTED,    /* at a rule that we don't support */
  GPUSONDE_NATIVE_UNREADABLE,     /* at stack memory that could not be read */
  GPUSONDE_NATIVE_ENDS,
};
