/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* The CPython offsets with which BPF programs read a thread's Python frames, and the frames that they emit.
 * The offsets of each CPython version are in one table, symbols/python_layout.cpp. */
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define GPUSONDE_PYTHON_FRAME_BYTES 120

/* Offsets in CPython's structures, in bytes, of one minor version on x86-64. */
struct gpusonde_python_layout {
  __u16 tss_key;        /* _PyRuntimeState: autoTSSkey, of the thread's PyThreadState */
  __u16 running_thread; /* _PyRuntimeState: gilstate.tstate_current; 0 where the key always has it (3.12+) */
  __u16 thread_id;      /* PyThreadState: thread_id, which is pthread_self(); used with running_thread */
  __u16 thread_frame;   /* PyThreadState: the innermost frame, or what points to it */
  __u16 frame_pointer;  /* in what thread_frame points to (_PyCFrame), the innermost frame; see indirect */

  __u16 frame_code;     /* frame: its code object */
  __u16 frame_previous; /* frame: its caller */
  __u16
      frame_instruction; /* frame: the instruction, as an address, or as an index where code_bytecode is 0 */
  __u16 frame_entry;     /* frame: the byte that marks entry frames; see entry */

  __u16 code_first_line; /* PyCodeObject: co_firstlineno */
  __u16 code_name;       /* PyCodeObject: co_name */
  __u16 code_file;       /* PyCodeObject: co_filename */
  __u16 code_bytecode;   /* PyCodeObject: co_code_adaptive; 0 where frames hold an index */

  __u8 frame_bytes;       /* of a frame, up to the last byte used here; at most GPUSONDE_PYTHON_FRAME_BYTES */
  __u8 indirect;          /* thread_frame points to a _PyCFrame (3.11, 3.12) */
  __u8 entry;             /* enum gpusonde_python_entry */
  __u8 instruction_shift; /* an index × 2^this is a byte offset */
};

/* Which Python frames begin a run of the interpreter's loop, which is one native frame of
 * _PyEval_EvalFrameDefault with all Python frames from its entry frame on. */
enum gpusonde_python_entry {
  GPUSONDE_ENTRY_EVERY,   /* each frame (3.9, 3.10) */
  GPUSONDE_ENTRY_FLAG,    /* those with frame.is_entry (3.11) */
  GPUSONDE_ENTRY_BY_SHIM, /* those called from a frame that lives on the C stack and has no code (3.12, 3.13)
                           */
};
#define GPUSONDE_PYTHON_ON_C_STACK 3 /* _PyInterpreterFrame.owner: FRAME_OWNED_BY_CSTACK */

/* The interpreter in one process. */
struct gpusonde_python {
  __u64 runtime; /* address of _PyRuntime; 0 when there is no interpreter */
  struct gpusonde_python_layout layout;
};

#define GPUSONDE_PYTHON_IS_ENTRY 0x80000000u
#define GPUSONDE_PYTHON_INSTRUCTION 0x7fffffffu

/* One Python frame. A code object may be freed and its memory reused; `check` identifies the one that was
 * found there. With code 0 it is the entry frame of a run that had no Python frame yet. */
struct gpusonde_python_frame {
  __u64 code;        /* address of the code object */
  __u32 instruction; /* byte offset of the instruction in the bytecode, and GPUSONDE_PYTHON_IS_ENTRY */
  __u32 check;       /* gpusonde_python_check */
};

/* Hashes a code object's co_name and co_filename (the pointers) and co_firstlineno. The file is included
 * because every module's code is named `<module>`, begins in line 1, and is freed once the module has run. */
static inline __u32 gpusonde_python_check(__u64 name, __u64 file, __u32 first_line) {
  const __u32 low = (name >> 3) & 0xffffffffu;
  const __u32 other = (file >> 3) & 0xffffffffu;
  return (low * 2654435761u ^ other) * 2654435761u ^ first_line;
}
